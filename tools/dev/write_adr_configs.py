"""Write the configs of configs/adr but those of configs/adr/unsupervised, and the metafile.

The files are what a user reads and edits; this script only saves typing them, and ``--check`` (a test) keeps them in
step with the tables below.
"""

import sys
from dataclasses import dataclass

from generated_configs import configs_in, metafile, write_or_check


@dataclass(frozen=True)
class Experiment:
    """A network on a data set.

    Attributes:
        folder: Below configs/adr.
        model: Part of the file name, and file below _base_/models unless ``parent`` is given.
        model_title: For the first line of each file.
        batch: Part of the file name: GPUs, images on each of them, and length.
        data: Part of the file name.
        data_title: For the first line of each file.
        dataset: File below _base_/datasets.
        schedule: File below _base_/schedules.
        num_classes: Of the head.
        epoch: Iterations of an epoch.
        methods: Its rows.
        body: What its cross-entropy config says beyond its bases.
        cross_entropy: The plain loss.
        adr: ADR's loss, where its gamma and tau are not those of _base_/methods/adr.py.
        parent: Model whose configs it inherits, in place of bases of its own.
    """

    folder: str
    model: str
    model_title: str
    batch: str
    data: str
    data_title: str
    dataset: str
    schedule: str
    num_classes: int
    epoch: int
    methods: tuple[str, ...]
    body: str = ''
    cross_entropy: str = "dict(type='CrossEntropyLoss')"
    adr: str = '_base_.adr_loss'
    parent: str = ''

    def name(self, method: str) -> str:
        """File name in OpenMMLab's pattern, without the suffix."""
        return f'{method}_{self.model}_{self.batch}_{self.data}'


ADR = 'adr-'
TITLES = {'ce': 'Cross entropy', 'ls': 'Label smoothing', 'ols': 'Online label smoothing', 'entropy': 'Entropy penalty'}
BASES = {'ce': [], 'ls': ['label_smoothing'], 'ols': ['online_label_smoothing'], 'entropy': ['entropy']}
ALL = tuple(prefix + method for method in TITLES for prefix in ('', ADR))
# Mixed images have no class of their own, whose soft target online label smoothing could average.
MIXED = tuple(method for method in ALL if 'ols' not in method)
MODEL_FILES = {'resnet50': 'resnet50_cls', 'vit-b16': 'vit_b16', 'alexnet': 'alexnet_cifar', 'convmixer-256-8':
               'convmixer_cifar', 'vgg': 'vgg_fer'}  # fmt: skip
FLOWERS_BODY = """model = dict(
    backbone=dict(
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://download.openmmlab.com/mmclassification/v0/resnet/resnet50_8xb32_in1k_20210831-'
            'ea4938fc.pth',
            prefix='backbone')),
    head=dict(num_classes=102))
"""
IMAGENET = dict(folder='imagenet', data='in1k', data_title='ImageNet-1K', num_classes=1000)
CIFAR10 = dict(folder='cifar10', data='cifar10', data_title='CIFAR-10', dataset='cifar10_supervised', num_classes=10,
               epoch=391)  # fmt: skip
EXPERIMENTS = (
    Experiment(
        model='resnet50', model_title='ResNet-50', batch='8xb32-100e', dataset='imagenet', schedule='imagenet_100e',
        epoch=5005, methods=ALL, body='model = dict(head=dict(num_classes=1000))\n', **IMAGENET),
    Experiment(
        model='resnet101', model_title='ResNet-101', batch='8xb32-100e', dataset='imagenet', schedule='imagenet_100e',
        epoch=5005, methods=ALL, parent='resnet50', body='model = dict(backbone=dict(depth=101))\n', **IMAGENET),
    Experiment(
        model='vit-b16', model_title='ViT-B/16', batch='8xb128-300e', dataset='imagenet_deit', schedule='deit_300e',
        epoch=1252, methods=MIXED, cross_entropy="dict(type='CrossEntropyLoss', use_soft=True)",
        body='model = dict(head=dict(loss=dict(use_soft=True)))\n', **IMAGENET),
    Experiment(
        folder='flowers102', model='resnet50', model_title='ResNet-50', batch='1xb64-100e', data='flowers102',
        data_title='Flowers-102', dataset='flowers102', schedule='flowers102_100e', num_classes=102, epoch=32,
        methods=ALL, body=FLOWERS_BODY),
    Experiment(
        model='alexnet', model_title='AlexNet', batch='1xb128-120e', schedule='cifar10_120e', methods=ALL, **CIFAR10),
    Experiment(
        model='convmixer-256-8', model_title='ConvMixer-256/8', batch='1xb128-100e', schedule='convmixer_cifar10_100e',
        methods=ALL, **CIFAR10),
    Experiment(
        folder='fer2013', model='vgg', model_title='VGG', batch='1xb64-300e', data='fer2013', data_title='FER2013',
        dataset='fer2013', schedule='fer2013_300e', num_classes=7, epoch=449, methods=ALL),
    Experiment(
        folder='cifar10_cpu', model='alexnet', model_title='AlexNet', batch='1xb64-1.2k', data='cifar10-10k',
        data_title='10,000 images of CIFAR-10, at CPU size', dataset='cifar10_images_10k', schedule='cifar10_cpu_1200',
        num_classes=10, epoch=157, methods=('ce', 'entropy', 'adr-ce', 'ls', 'adr-ls')),
)  # fmt: skip
# Share of wrong labels in percent, and the methods that learn from them, by folder and model.
NOISE = {
    ('cifar10', 'alexnet'): ((20, 40, 60, 80), ALL),
    ('cifar10_cpu', 'alexnet'): ((20, 40), ('ce', 'adr-ce')),
}
# Configs whose settings are chosen on training images that are held out.
HELD_OUT = {('cifar10_cpu', 'alexnet'): ('ce', 'entropy', 'adr-ce')}


def title(experiment: Experiment, method: str) -> str:
    """What a config trains."""
    plain = method.removeprefix(ADR)
    return f'{TITLES[plain]}{" + ADR" if method != plain else ""}, {experiment.model_title}, {experiment.data_title}'


def bases_of(files: list[str]) -> str:
    """The line of the bases, or several."""
    quoted = [f"'{file}'" for file in files]
    line = f'_base_ = [{", ".join(quoted)}]\n' if len(quoted) > 1 else f'_base_ = {quoted[0]}\n'
    return line if len(line) <= 121 else '_base_ = [\n' + ''.join(f'    {file},\n' for file in quoted) + ']\n'


def render(experiment: Experiment, method: str) -> str:
    """Text of one config on clean labels."""
    head = f'# {title(experiment, method)}.\n'
    plain = method.removeprefix(ADR)
    if experiment.parent:
        parent = Experiment(**{**experiment.__dict__, 'model': experiment.parent, 'parent': ''})
        return head + bases_of([f'./{parent.name(method)}.py']) + experiment.body
    if method == 'ce':
        listed = [f'models/{MODEL_FILES[experiment.model]}', f'datasets/{experiment.dataset}',
                  f'schedules/{experiment.schedule}', 'default_runtime_cls']  # fmt: skip
        files = ''.join(f"    '../../_base_/{file}.py',\n" for file in listed)
        return f'{head}_base_ = [\n{files}]\n{experiment.body}'
    leaves = BASES[plain] + (['adr'] if method != plain else [])
    bases = bases_of([f'./{experiment.name("ce")}.py', *(f'../../_base_/methods/{leaf}.py' for leaf in leaves)])
    ols = f'dict(_base_.ols_loss, num_classes={experiment.num_classes})'
    losses = {'ce': [experiment.cross_entropy], 'ls': ['_base_.label_smoothing'], 'ols': [ols],
              'entropy': [experiment.cross_entropy, '_base_.entropy_loss']}[plain]  # fmt: skip
    losses = [*losses, experiment.adr] if method != plain else losses
    if len(losses) == 1:
        loss = losses[0] if losses[0].startswith('dict(') else f'dict({losses[0]})'
        body = f'model = dict(head=dict(loss={loss.replace("dict(", "dict(_delete_=True, **", 1)}))\n'
    else:
        listed = f'            losses=[{", ".join(losses)}])))'
        if len(listed) > 120:
            lines = ''.join(f'                {loss},\n' for loss in losses)
            listed = f'            losses=[\n{lines}            ])))'
        body = ('model = dict(\n    head=dict(\n        loss=dict(\n            _delete_=True,\n'
                f"            type='mmssl.CombinedLoss',\n{listed}\n")  # fmt: skip
    if plain == 'ols':
        body += f'custom_hooks = [dict(_base_.ols_hook, interval={experiment.epoch})]\n'
    return head + bases + body


def render_noisy(experiment: Experiment, method: str, rate: int) -> str:
    """Text of one config on noisy labels."""
    return (
        f'# {title(experiment, method)}, {rate} % of the labels wrong.\n'
        + bases_of([f'./{experiment.name(method)}.py'])
        + 'train_dataloader = dict(\n    dataset=dict(\n        sources=dict(\n            labeled=dict(\n'
        "                _delete_=True,\n                type='mmssl.NoisyLabelDataset',\n"
        f"                noise=dict(kind='symmetric', rate={rate / 100}, seed=123),\n"
        '                dataset=_base_.train_set))))\n'
    )


def render_held_out(experiment: Experiment, method: str) -> str:
    """Text of one config that is evaluated on training images that are held out."""
    return (
        f'# {title(experiment, method)};\n# evaluated on training images that are held out, to choose settings.\n'
        + bases_of([f'./{experiment.name(method)}.py'])
        + 'val_dataloader = dict(dataset=dict(_delete_=True, **_base_.held_out_set))\n'
        + 'test_dataloader = val_dataloader\n'
    )


def all_configs() -> dict[str, str]:
    """Path below configs/adr of every config, with its text."""
    files = {}
    for experiment in EXPERIMENTS:
        key, folder = (experiment.folder, experiment.model), experiment.folder
        for method in experiment.methods:
            files[f'{folder}/{experiment.name(method)}.py'] = render(experiment, method)
        rates, methods = NOISE.get(key, ((), ()))
        for rate in rates:
            for method in methods:
                files[f'{folder}/{experiment.name(method)}-sym{rate}.py'] = render_noisy(experiment, method, rate)
        for method in HELD_OUT.get(key, ()):
            files[f'{folder}/{experiment.name(method)}-heldout.py'] = render_held_out(experiment, method)
    return files


def main(argv: list[str] | None = None) -> int:
    """Write or check the files."""
    files = all_configs()
    folders = {experiment.folder for experiment in EXPERIMENTS}
    by_hand = [path for path in configs_in('adr') if path.split('/')[0] not in folders]
    files['metafile.yml'] = metafile(
        'adr',
        'ADR',
        data='ImageNet-1K, Flowers-102, CIFAR-10, FER2013, BSDS500, PASCAL VOC 2012',
        techniques='SGD with momentum, AdamW, Adaptive discriminative regularization',
        paper='Adaptive Discriminative Regularization for Visual Classification',
        configs=sorted([*files, *by_hand]))
    return write_or_check('adr', files, by_hand, __doc__, argv)


if __name__ == '__main__':
    sys.exit(main())
