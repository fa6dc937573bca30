"""Write the configs of configs/layermatch, and the metafile.

The files are what a user reads and edits; this script only saves typing them, and ``--check`` (a test) keeps them in
step with the tables below.
"""

import sys
from dataclasses import dataclass

from generated_configs import bases_of, metafile, write_or_check


@dataclass(frozen=True)
class Experiment:
    """A network on a data set, for several numbers of labels.

    Attributes:
        folder: Below configs/layermatch.
        model: Part of the file name.
        model_file: File below _base_/models.
        batch: Part of the file name: GPUs, images on each of them, and length.
        supervised_batch: The same without unlabeled images.
        data_title: For the first line of each file.
        dataset: File below _base_/datasets; ``<dataset>_semi`` has the unlabeled images.
        schedule: File below _base_/schedules.
        labels: Labeled images by number of each class.
        iterations: Of the whole training.
        classes: Of the head, where they are not those of the model file.
        weight_decay: Where it is not that of the schedule.
        lr: Likewise.
        layer_decay: Likewise.
        labeled: Labeled images in a batch on each GPU.
        ratio: Labeled to unlabeled images in a batch.
        gpus: Number of GPUs.
        average: Whether the weights' moving average is evaluated.
        cpu: Whether it is of CPU size: fewer rows, statistics that follow faster.
    """

    folder: str
    model: str
    model_file: str
    batch: str
    supervised_batch: str
    data_title: str
    dataset: str
    schedule: str
    labels: dict[int, int]
    iterations: int
    classes: int = 0
    weight_decay: str = ''
    lr: str = ''
    layer_decay: str = ''
    labeled: int = 64
    ratio: tuple[int, int] = (1, 7)
    gpus: int = 1
    average: bool = True
    cpu: bool = False

    def name(self, method: str, labels: int) -> str:
        """File name in OpenMMLab's pattern, without the suffix."""
        batch = self.supervised_batch if method == 'supervised' else self.batch_of(method)
        return f'{method}_{self.model}_{batch}_{self.folder}-{labels}'

    def ratio_of(self, method: str) -> tuple[int, int]:
        """Labeled to unlabeled images; pseudo labels and mean teachers are published with as many of each."""
        return (1, 1) if method in WEAK_VIEWS else self.ratio

    def batch_of(self, method: str) -> str:
        """Part of the file name."""
        size = self.labeled * sum(self.ratio_of(method)) // self.ratio[0]
        return self.batch.format(size=size)


TITLES = {
    'supervised': 'Labels alone', 'fixmatch': 'FixMatch', 'flexmatch': 'FlexMatch', 'freematch': 'FreeMatch',
    'softmatch': 'SoftMatch', 'adamatch': 'AdaMatch', 'dash': 'Dash', 'uda': 'UDA', 'pseudo-label': 'PseudoLabel',
    'mean-teacher': 'Mean teacher', 'layermatch': 'LayerMatch',
}  # fmt: skip
# Table 4 of the paper: one part alone, and Grad-ReLU on FixMatch; Table 5: other intervals of the reset.
ABLATIONS = {
    'fixmatch-grad-relu': 'FixMatch + Grad-ReLU', 'freematch-grad-relu': 'Self-adaptive threshold + Grad-ReLU',
    'freematch-avg-clustering': 'Self-adaptive threshold + Avg-Clustering', 'layermatch-n1': 'LayerMatch with N = 1',
    'layermatch-n204800': 'LayerMatch with N = 204,800',
}  # fmt: skip
CPU_ROWS = {
    'supervised': TITLES['supervised'], 'fixmatch': TITLES['fixmatch'], 'freematch': TITLES['freematch'],
    'freematch-grad-relu': ABLATIONS['freematch-grad-relu'],
    'freematch-avg-clustering': ABLATIONS['freematch-avg-clustering'], 'layermatch': TITLES['layermatch'],
}  # fmt: skip
LEAVES = {'pseudo-label': 'pseudo_label', 'mean-teacher': 'mean_teacher_cls'}
VIT = dict(batch='1xb{size}-200k', supervised_batch='1xb8-200k', schedule='cosine_7_16_vit', iterations=200 * 1024,
           labeled=8, ratio=(1, 1), average=False)  # fmt: skip
SCRATCH = dict(batch='1xb{size}-1m', supervised_batch='1xb64-1m', schedule='cosine_7_16', iterations=2**20)
CPU = dict(model='wrn10-2', model_file='wrn10_2_cpu', batch='cpu-1k', supervised_batch='cpu-1k',
           schedule='cpu_1k_cls', iterations=1000, labeled=8, average=False, cpu=True)  # fmt: skip
EXPERIMENTS = (
    Experiment('cifar10', 'vit-t-p2', 'vit_t_p2_32', data_title='CIFAR-10', dataset='cifar10',
               labels={10: 1, 40: 4, 250: 25}, **VIT),
    Experiment('cifar100', 'vit-s-p2', 'vit_s_p2_32', data_title='CIFAR-100', dataset='cifar100',
               labels={200: 2, 400: 4, 2500: 25}, **VIT),
    Experiment('stl10', 'vit-b-p16', 'vit_b_p16_96', data_title='STL-10', dataset='stl10',
               labels={10: 1, 40: 4, 100: 10}, lr='1e-4', layer_decay='0.95', **VIT),
    Experiment('cifar10', 'wrn28-2', 'wrn28_2', data_title='CIFAR-10', dataset='cifar10',
               labels={40: 4, 250: 25, 4000: 400}, **SCRATCH),
    Experiment('cifar100', 'wrn28-8', 'wrn28_8', data_title='CIFAR-100', dataset='cifar100',
               labels={400: 4, 2500: 25, 10000: 100}, weight_decay='1e-3', **SCRATCH),
    Experiment('stl10', 'wrn37-2', 'wrn37_2', data_title='STL-10', dataset='stl10',
               labels={40: 4, 250: 25, 1000: 100}, **SCRATCH),
    Experiment('imagenet100', 'resnet50', 'resnet50_cls', data_title='ImageNet-100', dataset='imagenet100',
               labels={10000: 100}, classes=100, weight_decay='3e-4', gpus=4,
               **dict(SCRATCH, batch='4xb{size}-1m', supervised_batch='4xb16-1m', labeled=16)),
    Experiment('mnist', data_title='MNIST', dataset='mnist', labels={10: 1, 40: 4}, **CPU),
    Experiment('cifar10', data_title='CIFAR-10', dataset='cifar10_images', labels={40: 4, 400: 40}, **CPU),
)  # yapf: disable


def rows_of(experiment: Experiment, labels: int) -> dict[str, str]:
    """Methods of an experiment, with their titles."""
    if experiment.cpu:
        return CPU_ROWS
    return {**TITLES, **ABLATIONS} if experiment.model == 'vit-t-p2' and labels == 10 else TITLES


def optimizer(experiment: Experiment) -> str:
    """What differs from the schedule's optimizer."""
    values = [f'{key}={value}' for key, value in (('lr', experiment.lr), ('weight_decay', experiment.weight_decay))
              if value]  # fmt: skip
    parts = [f'optimizer=dict({", ".join(values)})'] if values else []
    if experiment.layer_decay:
        parts.append(f'paramwise_cfg=dict(layer_decay_rate={experiment.layer_decay})')
    return f'optim_wrapper = dict({", ".join(parts)})\n' if parts else ''


def loader(experiment: Experiment, method: str, labels: int) -> str:
    """The labels, and the batch."""
    per_class = f'dataset=dict(sources=dict(labeled=dict(per_class={experiment.labels[labels]})))'
    if method == 'supervised':
        batch = f'batch_size={experiment.labeled}, '
    else:
        ratio = experiment.ratio_of(method)
        batch = f'batch_size={experiment.labeled * sum(ratio) // ratio[0]}, sampler=dict(source_ratio={list(ratio)}), '
    workers = 'num_workers=1, ' if experiment.cpu else ''
    text = f'train_dataloader = dict({workers}{batch}{per_class})\n'
    if len(text) > 121:
        text = f'train_dataloader = dict(\n    {workers}{batch[:-1]}\n    {per_class})\n'
    if experiment.cpu:
        text += 'val_dataloader = dict(num_workers=1)\ntest_dataloader = dict(num_workers=1)\n'
    return text


def scale(experiment: Experiment, method: str) -> str:
    """The batch that the learning rate is for."""
    ratio = (1, 0) if method == 'supervised' else experiment.ratio_of(method)
    size = experiment.gpus * experiment.labeled * sum(ratio) // ratio[0]
    return f'auto_scale_lr = dict(base_batch_size={size})\n'


def root(experiment: Experiment, method: str, labels: int) -> str:
    """A supervised config, or FixMatch, which the other methods inherit."""
    dataset = experiment.dataset + ('' if method == 'supervised' else '_semi')
    leaves = [] if method == 'supervised' else [f'../../_base_/methods/{method}.py']
    text = bases_of([
        f'../../_base_/models/{experiment.model_file}.py', f'../../_base_/datasets/{dataset}.py', *leaves,
        f'../../_base_/schedules/{experiment.schedule}.py', '../../_base_/default_runtime_cls.py',
    ])  # fmt: skip
    head = f', head=dict(num_classes={experiment.classes})' if experiment.classes else ''
    if method == 'supervised':
        text += f'model = dict(data_preprocessor=_base_.image_norm{head})\n'
    else:
        extra = f', head=dict(_base_.model.head, num_classes={experiment.classes})' if experiment.classes else ''
        text += f'classifier = dict(_base_.model, data_preprocessor=_base_.image_norm{extra})\n'
        text += ("model = dict(\n    _delete_=True, type='mmssl.PseudoLabelClassifier', classifier=classifier, "
                 f'semi_train_cfg=_base_.{method})\n')
    text += loader(experiment, method, labels) + optimizer(experiment)
    if experiment.average:
        text += "custom_hooks = [dict(type='EMAHook', momentum=0.001)]\n"
    if experiment.cpu and method != 'supervised':
        text += "custom_hooks = [dict(type='mmssl.PseudoLabelDiagnosticsHook', interval=50)]\n"
    return text + scale(experiment, method)


def hooks(experiment: Experiment, added: list[str]) -> str:
    """The hooks of FixMatch's config, and more."""
    inherited = ['*_base_.custom_hooks'] if experiment.average or experiment.cpu else []
    return f'custom_hooks = [{", ".join([*inherited, *added])}]\n'


VIEWS = """branches = {branches}
view = [*_base_.weak, _base_.pack]
sup_view = dict(type='mmssl.MultiBranch', branches=branches, sup=view)
unsup_views = dict(type='mmssl.MultiBranch', branches=branches, {views})
train_dataloader = dict(
    batch_size={size},
    sampler=dict(source_ratio=[1, 1]),
    dataset=dict(
        sources=dict(
            labeled=dict(dataset=dict(pipeline=[*_base_.load, sup_view])),
            unlabeled=dict(pipeline=[*_base_.load, unsup_views]))))
"""
# Methods whose losses read other views than FixMatch's: a strong one would be made for nothing.
WEAK_VIEWS = {'pseudo-label': ['unsup_weak'], 'mean-teacher': ['unsup_weak', 'unsup_weak2']}


def derived(experiment: Experiment, method: str, labels: int) -> str:
    """A method that inherits FixMatch, or a part of LayerMatch that inherits what it is added to."""
    ratio, relu, average = experiment.ratio_of(method), '_base_.grad_relu_hook', '_base_.ema_head_hook'
    if experiment.cpu:
        # A hundredth of the training, as the published interval is of the 204,800 iterations of fine-tuning.
        average = f'dict(_base_.ema_head_hook, reset_interval={experiment.iterations // 100})'
    parts = {
        'fixmatch-grad-relu': ('fixmatch', [relu]),
        'freematch-grad-relu': ('freematch', [relu]),
        'freematch-avg-clustering': ('freematch', [average]),
        'layermatch': ('freematch', [relu, average]),
        'layermatch-n1': ('freematch', [relu, 'dict(_base_.ema_head_hook, reset_interval=1)']),
        'layermatch-n204800': ('freematch', [relu, 'dict(_base_.ema_head_hook, reset_interval=204800)']),
    }
    if method in parts:
        parent, added = parts[method]
        text = bases_of([f'./{experiment.name(parent, labels)}.py', '../../_base_/methods/layermatch.py'])
        if parent == 'freematch':
            # The paper takes the threshold alone from FreeMatch.
            text += 'model = dict(semi_train_cfg=dict(fairness_weight=0.))\n'
        return text + hooks(experiment, added)
    leaf = LEAVES.get(method, method)
    text = bases_of([f'./{experiment.name("fixmatch", labels)}.py', f'../../_base_/methods/{leaf}.py'])
    extra = ''
    if method in WEAK_VIEWS:
        extra = f', unsup_ramp={2 * experiment.iterations // 5}'
    options = f'_base_.{leaf}'
    if experiment.cpu:
        options = leaf
        # An average over 1,000 iterations would hardly have left its start when the training ends.
        text += f'{leaf} = dict(_base_.{leaf}, threshold=dict(_base_.{leaf}.threshold, momentum=0.01))\n'
    text += f'model = dict(semi_train_cfg=dict(_delete_=True, **{options}{extra}))\n'
    if method in WEAK_VIEWS:
        views = WEAK_VIEWS[method]
        text += VIEWS.format(branches=['sup', *views], size=experiment.labeled * 2,
                             views=', '.join(f'{view}=view' for view in views))  # fmt: skip
    if method == 'mean-teacher':
        # The teacher is the average already.
        text += 'custom_hooks = [_base_.mean_teacher_hook]\n'
    if ratio != experiment.ratio:
        text += scale(experiment, method)
    if method == 'flexmatch':
        text += hooks(experiment, ['_base_.flexmatch_hook'])
    return text


def all_configs() -> dict[str, str]:
    """Path below configs/layermatch of every config, with its text."""
    files = {}
    for experiment in EXPERIMENTS:
        for labels in experiment.labels:
            for method, title in rows_of(experiment, labels).items():
                make = root if method in ('supervised', 'fixmatch') else derived
                size = ', at CPU size' if experiment.cpu else ''
                note = f'# {title} on {experiment.data_title} with {labels:,} labels{size}.\n'
                path = f'{experiment.folder}/{experiment.name(method, labels)}.py'
                files[path] = note + make(experiment, method, labels)
    return files


def main(argv: list[str] | None = None) -> int:
    """Write or check the files."""
    files = all_configs()
    files['metafile.yml'] = metafile(
        'layermatch',
        'LayerMatch',
        data='CIFAR-10, CIFAR-100, STL-10, ImageNet-100, MNIST',
        techniques='SGD with momentum, AdamW, Pseudo labels, Grad-ReLU, Avg-Clustering',
        paper="'LayerMatch: Do Pseudo-labels Benefit All Layers?'",
        configs=sorted(files))
    return write_or_check('layermatch', files, (), __doc__, argv)


if __name__ == '__main__':
    sys.exit(main())
