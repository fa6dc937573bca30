"""Write the configs of configs/fpl/{voc,cityscapes}, one for each cell of the paper's tables, and the metafile.

The files are what a user reads and edits; this script only saves typing hundreds of them, and ``--check`` (a test)
keeps them in step with the table below.
"""

import sys

from generated_configs import configs_in, metafile, write_or_check

METHODS = (
    'supervised', 'cps', 'cps-cutmix', 'mean-teacher-cutmix', 'unimatch', 'ael',
    'fpl-cps', 'fpl-cps-cutmix', 'fpl-mean-teacher-cutmix', 'fpl-unimatch', 'fpl-ael',
)  # fmt: skip
TITLES = {
    'supervised': 'Supervised baseline',
    'cps': 'CPS',
    'cps-cutmix': 'CPS + CutMix',
    'mean-teacher-cutmix': 'Mean teacher + CutMix',
    'unimatch': 'UniMatch',
    'ael': 'AEL',
}
# GPUs and images on each of them.
BATCHES = {
    'supervised': (4, 2),
    'cps': (4, 4),
    'cps-cutmix': (4, 6),
    'mean-teacher-cutmix': (4, 6),
    'unimatch': (4, 4),
    'ael': (8, 4),
}
# Crops on VOC and Cityscapes, where they are not CPS's.
CROPS = {'unimatch': (321, 769), 'ael': (513, 769)}
# Epochs on VOC and Cityscapes, each one pass over the unlabeled images, and unlabeled images of an iteration, where the
# schedule is not CPS's.
EPOCHS = {'unimatch': (80, 240, 8), 'ael': (80, 200, 16)}
# Split: (list, iterations of CPS's schedule, unlabeled images). Iterations are floor(unlabeled / 8) times CPS's epochs;
# few labels: 30 x floor(10,582 / 8). Whatever the list, published schedules count the few labels' unlabeled images as
# the 10,582 of the augmented set.
VOC = {
    '1over8': ('train_aug_{}_1-8', 39338, 9259),
    '1over16': ('train_aug_{}_1-16', 39680, 9920),
    '1over4': ('train_aug_{}_1-4', 39680, 7936),
    '1over2': ('train_aug_{}_1-2', 39660, 5291),
    'low92': ('pseudoseg_{}_1-16', 39660, 10582),
    'low183': ('pseudoseg_{}_1-8', 39660, 10582),
    'low366': ('pseudoseg_{}_1-4', 39660, 10582),
    'low732': ('pseudoseg_{}_1-2', 39660, 10582),
    # All 1,464 images are labeled here, so the unlabeled pool is the augmented set without them.
    'low1464': ('train_{}_1464', 39660, 10582),
}
CITYSCAPES = {
    '1over8': ('train_aug_{}_1-8', 44525, 2603),
    '1over16': ('train_aug_{}_1-16', 44544, 2789),
    '1over4': ('train_aug_{}_1-4', 44480, 2231),
    '1over2': ('train_aug_{}_1-2', 44400, 1487),
    '1over30': ('train_aug_{}_1-30', 44500, 2875),
}
MAIN_SPLIT = '1over8'
FPL = 'fpl-'


def name_of(method: str, depth: int, data: str, split: str) -> str:
    """File name in OpenMMLab's pattern; the batch is that of one GPU."""
    cityscapes, plain = data == 'cityscapes', method.removeprefix(FPL)
    gpus, batch = BATCHES[plain]
    size = CROPS.get(plain, (512, 800))[cityscapes]
    schedule = f'{EPOCHS[plain][cityscapes]}e' if plain in EPOCHS else '40k'
    return f'{method}_deeplabv3plus-r{depth}_{gpus}xb{batch}-{schedule}_{data}-{split}-{size}x{size}.py'


def iterations(method: str, cityscapes: bool, split: str) -> int:
    """Length of the training."""
    _, iters, unlabeled = (CITYSCAPES if cityscapes else VOC)[split]
    if method not in EPOCHS:
        return iters
    *epochs, batch = EPOCHS[method]
    return epochs[cityscapes] * (unlabeled // batch)


def render(method: str, depth: int, data: str, split: str) -> str:
    """Text of one config."""
    cityscapes, plain = data == 'cityscapes', method.removeprefix(FPL)
    what = TITLES[plain] + (' + FPL' if method != plain else '')
    title = f'# {what}, DeepLabV3+ R-{depth}, {"Cityscapes" if cityscapes else "VOC 2012"} {split}.\n'
    if depth == 101:
        inner = "pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)"
        inner = inner if plain == 'supervised' else f'segmentor=dict({inner})'
        return f"{title}_base_ = './{name_of(method, 50, data, split)}'\nmodel = dict({inner})\n"
    if method != plain:
        # What the base says about its loss goes with it.
        loss = '_base_.fpl_loss'
        loss = f'dict(_delete_=True, **{loss})' if plain in ('unimatch', 'ael') else loss
        bases = [f"'./{name_of(plain, depth, data, split)}'", "'../../_base_/methods/fpl.py'"]
        line = f'_base_ = [{", ".join(bases)}]\n'
        if len(line) > 121:
            line = '_base_ = [\n' + ''.join(f'    {base},\n' for base in bases) + ']\n'
        return f'{title}{line}model = dict(semi_train_cfg=dict(unsup_loss={loss}))\n'
    if method == 'cps-cutmix':
        weight = 0.1 if split.startswith('low') else 5.0 if cityscapes else 1.0
        return (
            f"{title}_base_ = ['./{name_of('cps', depth, data, split)}', '../../_base_/methods/cutmix.py']\n"
            f"model = dict(semi_train_cfg=dict(unsup_weight={weight}, unsup_on='unlabeled', mix=_base_.cutmix))\n"
            + _mixed_batch()
        )
    return title + (_main(method, cityscapes) if split == MAIN_SPLIT else _other_split(method, depth, data, split))


def _main(method: str, cityscapes: bool) -> str:
    """The config that those of the other splits inherit."""
    semi = '' if method == 'supervised' else '_semi'
    prefix = '' if method == 'supervised' else f'{method}_'
    schedule, leaves, body = method, [], ''
    if method == 'cps':
        body = f"model = dict(semi_train_cfg=dict(unsup_weight={6.0 if cityscapes else 1.5}, unsup_on='all'))\n"
        body += 'auto_scale_lr = dict(base_batch_size=16)\n'
    elif method == 'mean-teacher-cutmix':
        semi, prefix, leaves = '_weak_strong', 'mean_teacher_', ['cutmix']
        body = 'model = dict(semi_train_cfg=dict(unsup_weight=1.0, mix=_base_.cutmix))\n'
        body += _mixed_batch() + "val_cfg = dict(type='mmssl.SubModelValLoop')\n"
        body += "custom_hooks = [dict(type='mmssl.MeanTeacherHook', momentum=0.01)]\n"
    elif method == 'unimatch':
        semi, leaves = '_unimatch', ['unimatch']
        body = '# Both halved, as published.\n'
        body += 'model = dict(semi_train_cfg=dict(**_base_.unimatch, sup_weight=0.5, unsup_weight=0.5))\n'
        body += 'custom_hooks = [_base_.unimatch_hook]\n'
    elif method == 'ael':
        semi = '_ael'
        body = 'model = dict(semi_train_cfg=dict(copy_paste=dict(pipeline=_base_.paste_pipeline)))\n'
        body += "val_cfg = dict(type='mmssl.SubModelValLoop')\n"
        teacher = "dict(type='mmssl.MeanTeacherHook', momentum=0.01, buffers='own')"
        body += f"custom_hooks = [{teacher}, dict(type='mmssl.AELHook')]\n"
    if method not in EPOCHS:
        schedule = 'cps_40k'
        body += 'optim_wrapper = dict(optimizer=dict(lr=0.02))\n' if cityscapes else ''
    elif method == 'unimatch' and cityscapes:
        body += 'optim_wrapper = dict(\n    optimizer=dict(lr=0.005),\n'
        body += "    paramwise_cfg=dict(custom_keys={'decode_head': dict(lr_mult=1.)}))\n"
    bases = [
        f'models/{prefix}deeplabv3plus_r50{"_cityscapes" if cityscapes else ""}',
        f'datasets/{"cityscapes" if cityscapes else "voc2012"}{semi}',
        *(f'methods/{leaf}' for leaf in leaves),
        f'schedules/{schedule}',
        'default_runtime',
    ]
    listed = ''.join(f"    '../../_base_/{base}.py',\n" for base in bases)
    return f'_base_ = [\n{listed}]\n{body}' + _schedule(iterations(method, cityscapes, MAIN_SPLIT))


def _other_split(method: str, depth: int, data: str, split: str) -> str:
    """What a split says beyond the one of 1/8: its lists, and the length of the training where it differs."""
    cityscapes, low = data == 'cityscapes', split.startswith('low')
    lists = (CITYSCAPES if cityscapes else VOC)[split][0]
    labeled, unlabeled = (f'splits/{lists.format(kind)}.txt' for kind in ('labeled', 'unlabeled'))
    body = f"_base_ = './{name_of(method, depth, 'cityscapes' if cityscapes else 'voc12aug', MAIN_SPLIT)}'\n"
    if method == 'supervised':
        body += f"train_dataloader = dict(dataset=dict(ann_file='{labeled}'))\n"
    else:
        if method == 'cps' and low:
            body += 'model = dict(semi_train_cfg=dict(unsup_weight=0.1))\n'
        source = f"ann_file='{unlabeled}'"
        if low:
            # The published lists of a pair share one image, which then counts as labeled.
            source = f"\n                {source},\n                exclude='{labeled}'"
        body += (
            'train_dataloader = dict(\n    dataset=dict(\n        sources=dict(\n'
            f"            labeled=dict(ann_file='{labeled}'),\n"
            f'            unlabeled=dict({source}))))\n'
        )
    iters = iterations(method, cityscapes, split)
    return body + (_schedule(iters) if iters != iterations(method, cityscapes, MAIN_SPLIT) else '')


def _mixed_batch() -> str:
    return (
        '# Two unlabeled images make a mixed one.\n'
        'train_dataloader = dict(batch_size=6, sampler=dict(source_ratio=[1, 2]))\n'
        'auto_scale_lr = dict(base_batch_size=24)\n'
    )


def _schedule(iters: int) -> str:
    return (
        f'train_cfg = dict(max_iters={iters})\n'
        f"param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end={iters}, by_epoch=False)]\n"
    )


def all_configs() -> dict[str, str]:
    """Path below configs/fpl of every config, with its text."""
    files = {}
    for folder, splits in (('voc', VOC), ('cityscapes', CITYSCAPES)):
        for split in splits:
            data = 'cityscapes' if folder == 'cityscapes' else 'voc12' if split.startswith('low') else 'voc12aug'
            for method in METHODS:
                for depth in (50, 101):
                    files[f'{folder}/{name_of(method, depth, data, split)}'] = render(method, depth, data, split)
    return files


def main(argv: list[str] | None = None) -> int:
    """Write or check the files."""
    files = all_configs()
    by_hand = [path for path in configs_in('fpl') if path.startswith('camvid/')]
    files['metafile.yml'] = metafile(
        'fpl',
        'FPL',
        data='CamVid, PASCAL VOC 2012, Cityscapes',
        techniques='SGD with momentum, Cross pseudo supervision, Fuzzy positive learning',
        paper='Fuzzy Positive Learning for Semi-supervised Semantic Segmentation',
        configs=[*by_hand, *sorted(files)])
    return write_or_check('fpl', files, by_hand, __doc__, argv)


if __name__ == '__main__':
    sys.exit(main())
