"""Write the classification configs of configs/rgd_pll, and the metafile.

The files are what a user reads and edits; this script only saves typing them, and ``--check`` (a test) keeps them in
step with the tables below.
"""

import sys
from dataclasses import dataclass

from generated_configs import bases_of, configs_in, metafile, write_or_check


@dataclass(frozen=True)
class Experiment:
    """A network on a data set, for several kinds of candidate sets.

    Attributes:
        folder: Below configs/rgd_pll.
        data_title: For the first line of each file.
        dataset: File below _base_/datasets.
        settings: Kinds of sets: part of their files' names. The configs of the first one state everything, the others
            inherit from them.
        iterations: Of the whole training.
        warmup: Iterations before reliability is used.
        ramp: Iterations in which its weight rises.
        model: Part of the file name.
        model_file: File below _base_/models.
        batch: Part of the file name: GPUs, images on each of them, and length.
        schedule: File below _base_/schedules, and its iterations.
        classes: Of the head, where they are not those of the model file.
        lr: Where it is not that of the schedule.
        cpu: Whether it is of CPU size: fewer rows, a teacher that follows faster.
        ablations: The setting that has the ablations, or '' for all.
    """

    folder: str
    data_title: str
    dataset: str
    settings: tuple[str, ...]
    iterations: int
    warmup: int
    ramp: int
    model: str = 'resnet18'
    model_file: str = 'resnet18_32'
    batch: str = '1xb256-500e'
    schedule: tuple[str, int] = ('partial_500e', 98000)
    classes: int = 0
    lr: str = ''
    cpu: bool = False
    ablations: str | None = None

    def name(self, method: str, setting: str) -> str:
        """File name in OpenMMLab's pattern, without the suffix."""
        return f'{method}_{self.model}_{self.batch}_{self.folder}-{setting}'


# Folders whose configs are written by hand.
BY_HAND = ('annotators', 'camvid')
BASELINES = {'cc': 'CC', 'proden': 'PRODEN', 'lws': 'LWS', 'cavl': 'CAVL'}
METHODS = {**BASELINES, 'rgd-pll': 'RGD-PLL'}
CPU_METHODS = ('cc', 'proden', 'pico', 'rgd-pll')
# What learns from the weak view alone, and what keeps nothing of a sample.
WEAK_VIEW, NO_HOOK = ('cc', 'proden', 'lws', 'cavl'), ('cc', )
# Of the paper: each of its four parts left out. Ours: the others.
CPU_ABLATIONS = {
    'rgd-pll-no-teacher': 'RGD-PLL without the teacher',
    'rgd-pll-no-entropy-weight': 'RGD-PLL without entropy weights',
    'rgd-pll-no-projection': 'RGD-PLL without the projection',
    'rgd-pll-no-balance': 'RGD-PLL without the norm balance',
    'rgd-pll-no-soft-loss': 'RGD-PLL without the soft loss',
}
ABLATIONS = {
    **CPU_ABLATIONS,
    'rgd-pll-no-schedule': 'RGD-PLL without the schedule',
    'rgd-pll-soft-auxiliary': 'RGD-PLL with the soft loss among the auxiliary ones',
}
CHANGES = {
    'rgd-pll-no-teacher': 'model = dict(semi_train_cfg=dict(teacher=None))\ncustom_hooks = []\n',
    'rgd-pll-no-entropy-weight': 'model = dict(semi_train_cfg=dict(entropy_weighting=False))\n',
    'rgd-pll-no-projection': 'optim_wrapper = dict(projection=None)\n',
    'rgd-pll-no-balance': 'optim_wrapper = dict(balance=False)\n',
    'rgd-pll-no-soft-loss': 'model = dict(semi_train_cfg=dict(soft_loss=False))\n',
    'rgd-pll-no-schedule': 'model = dict(semi_train_cfg=dict(unsup_begin=0, unsup_ramp=0))\n'
                           'optim_wrapper = dict(warmup=0, ramp=0)\n',
    'rgd-pll-soft-auxiliary': "optim_wrapper = dict(primary=['prediction_loss'], "
                              "auxiliary=['soft_loss', 'reliability_loss'])\n",
}  # yapf: disable
TEN = ('uniform0.1', 'uniform0.3', 'uniform0.5', 'uniform0.7', 'instance0.4')
CPU = dict(settings=('uniform0.3', 'uniform0.7', 'instance0.4'), model='wrn10-2', model_file='wrn10_2_cpu', cpu=True,
           ablations='')  # fmt: skip
EXPERIMENTS = (
    Experiment('cifar10', 'CIFAR-10', 'cifar10_partial', TEN, iterations=98000, warmup=1960, ramp=7840,
               ablations='instance0.4'),
    Experiment('cifar100', 'CIFAR-100', 'cifar100_partial',
               ('uniform0.01', 'uniform0.05', 'uniform0.1', 'uniform0.2', 'instance0.04'), iterations=98000,
               warmup=3920, ramp=7840, classes=100, lr='0.1'),
    Experiment('svhn', 'SVHN', 'svhn_partial', TEN, iterations=143500, warmup=2870, ramp=11480),
    Experiment('fashion_mnist', 'Fashion-MNIST', 'fashion_mnist_partial', TEN, iterations=117500, warmup=2350,
               ramp=9400),
    Experiment('mnist', 'MNIST', 'mnist_partial', iterations=500, warmup=100, ramp=100, batch='cpu-500',
               schedule=('partial_cpu_500', 500), **CPU),
    Experiment('cifar10', 'CIFAR-10', 'cifar10_images_partial', iterations=800, warmup=160, ramp=160, batch='cpu-800',
               schedule=('partial_cpu_800', 800), **CPU),
)  # yapf: disable


def rows_of(experiment: Experiment, setting: str) -> dict[str, str]:
    """Methods of an experiment, with their titles."""
    rows = {name: title for name, title in METHODS.items() if not experiment.cpu or name in CPU_METHODS}
    if experiment.ablations in ('', setting):
        rows.update(CPU_ABLATIONS if experiment.cpu else ABLATIONS)
    return rows


def other_setting(experiment: Experiment, method: str, setting: str) -> str:
    """The method's config of the first setting, with other sets."""
    text = bases_of([f'./{experiment.name(method, experiment.settings[0])}.py'])
    text += f"candidate_file = _base_.candidate_root + '/{setting}_seed{{seed}}.txt'\n"
    text += 'train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))\n'
    if experiment.cpu:
        text += 'val_cfg = dict(held_out_dataloader=dict(dataset=dict(candidate_file=candidate_file)))\n'
    return text


def rgd_pll(experiment: Experiment) -> str:
    """Model, optimizer and hooks of RGD-PLL."""
    first = EXPERIMENTS[0]
    own = [f'{option}={value}' for option, value, usual in (
        ('warmup', experiment.warmup, first.warmup), ('ramp', experiment.ramp, first.ramp)) if value != usual]
    text, options = '', 'semi_train_cfg=_base_.rgd_pll.semi_train_cfg'
    if own:
        schedule = ', '.join(own).replace('warmup', 'unsup_begin').replace('ramp=', 'unsup_ramp=')
        text = f'semi_train_cfg = dict(_base_.rgd_pll.semi_train_cfg, {schedule})\n'
        options = 'semi_train_cfg=semi_train_cfg'
    text += ("model = dict(\n    _delete_=True,\n    type='mmssl.PartialLabelClassifier',\n    classifier=classifier,\n"
             f'    estimator=_base_.rgd_pll.estimator,\n    {options})\n')
    changes = [*own, *([f'optimizer=dict(lr={experiment.lr})'] if experiment.lr else [])]
    text += f'optim_wrapper = dict({", ".join(["_base_.rgd_pll_surgery", *changes])})\n'
    # The average of the published momentum would hardly have left its start at the end of a short training.
    hook = 'dict(_base_.rgd_pll_hook, momentum=0.02)' if experiment.cpu else '_base_.rgd_pll_hook'
    return text + f'custom_hooks = [{hook}]\n'


def baseline(experiment: Experiment, method: str) -> str:
    """Model, view, optimizer and hook of a baseline."""
    text = ("model = dict(\n    _delete_=True, type='mmssl.PartialLabelClassifier', classifier=classifier, "
            f'**_base_.{method})\n')
    if method in WEAK_VIEW:
        view = 'dataset=dict(pipeline=_base_.weak_view)'
        view = f'dataset=dict({view})' if experiment.cpu else view  # of a part of the data set
        text += f'train_dataloader = dict(dataset=dict(sources=dict(labeled=dict({view}))))\n'
    if experiment.lr:
        text += f'optim_wrapper = dict(optimizer=dict(lr={experiment.lr}))\n'
    if method not in NO_HOOK:
        text += f'custom_hooks = [_base_.{method}_hook]\n'
    return text


def root(experiment: Experiment, method: str) -> str:
    """The config of a method for the first setting."""
    leaf = method.replace('-', '_')
    text = bases_of([
        f'../../_base_/models/{experiment.model_file}.py', f'../../_base_/datasets/{experiment.dataset}.py',
        f'../../_base_/methods/{leaf}.py', f'../../_base_/schedules/{experiment.schedule[0]}.py',
        '../../_base_/default_runtime_cls.py',
    ])  # fmt: skip
    head = f', head=dict(_base_.model.head, num_classes={experiment.classes})' if experiment.classes else ''
    text += f'classifier = dict(_base_.model, data_preprocessor=_base_.image_norm{head})\n'
    text += baseline(experiment, method) if method in BASELINES else rgd_pll(experiment)
    return text + length(experiment)


def length(experiment: Experiment) -> str:
    """What differs from the schedule, and validation."""
    text, count = '', experiment.iterations
    if count != experiment.schedule[1]:
        text += (f'param_scheduler = [dict(_base_.param_scheduler[0], T_max={count}, end={count})]\n'
                 f'train_cfg = dict(max_iters={count}, val_interval={count // 50})\n'
                 f'default_hooks = dict(checkpoint=dict(interval={count // 50}))\n')
    if experiment.cpu:
        text += 'val_cfg = _base_.held_out_validation\n'
        # One batch of 64 says little about the share of right targets.
        text += "log_processor = dict(window_size=25, mean_pattern='.*(loss|time|target_acc|estimator_acc).*')\n"
    return text


def ablation(experiment: Experiment, method: str, setting: str) -> str:
    """RGD-PLL with one thing changed."""
    return bases_of([f'./{experiment.name("rgd-pll", setting)}.py']) + CHANGES[method]


def sets_of(setting: str) -> str:
    """Kind of candidate sets, in words."""
    if setting.startswith('uniform'):
        return f'uniform candidate sets (q = {setting.removeprefix("uniform")})'
    return f'instance-dependent candidate sets (rate {setting.removeprefix("instance")})'


def all_configs() -> dict[str, str]:
    """Path below configs/rgd_pll of every config, with its text."""
    files = {}
    for experiment in EXPERIMENTS:
        for setting in experiment.settings:
            for method, title in rows_of(experiment, setting).items():
                if method in CHANGES:
                    text = ablation(experiment, method, setting)
                elif setting == experiment.settings[0]:
                    text = root(experiment, method)
                else:
                    text = other_setting(experiment, method, setting)
                size = ', at CPU size' if experiment.cpu else ''
                note = f'# {title} on {experiment.data_title} with {sets_of(setting)}{size}.\n'
                files[f'{experiment.folder}/{experiment.name(method, setting)}.py'] = note + text
    return files


def main(argv: list[str] | None = None) -> int:
    """Write or check the files."""
    files = all_configs()
    by_hand = [path for path in configs_in('rgd_pll') if path.split('/')[0] in BY_HAND]
    files['metafile.yml'] = metafile(
        'rgd_pll',
        'RGD-PLL',
        data='CIFAR-10, CIFAR-100, SVHN, Fashion-MNIST, MNIST, CamVid',
        techniques='SGD with momentum, Partial labels, Gradient surgery, Mean teacher',
        paper="'Reliability-aware Gradient Decoupling for Partial Label Learning'",
        configs=sorted([*files, *by_hand]))
    return write_or_check('rgd_pll', files, by_hand, __doc__, argv)


if __name__ == '__main__':
    sys.exit(main())
