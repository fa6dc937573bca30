"""Write the configs of configs/fpl/{voc,cityscapes}, one for each cell of the paper's tables, and the metafile.

The files are what a user reads and edits; this script only saves typing 140 of them, and ``--check`` (a test) keeps
them in step with the table below.
"""

import argparse
import sys
from pathlib import Path

METHODS = ('supervised', 'cps', 'cps-cutmix', 'fpl-cps', 'fpl-cps-cutmix')
TITLES = {
    'supervised': 'Supervised baseline',
    'cps': 'CPS',
    'cps-cutmix': 'CPS + CutMix',
    'fpl-cps': 'CPS + FPL',
    'fpl-cps-cutmix': 'CPS + CutMix + FPL',
}
# Split: (list, iterations). Iterations are floor(unlabeled / 8) times CPS's epochs; few-label 30 x floor(10,582 / 8).
VOC = {
    '1over8': ('train_aug_{}_1-8', 39338),
    '1over16': ('train_aug_{}_1-16', 39680),
    '1over4': ('train_aug_{}_1-4', 39680),
    '1over2': ('train_aug_{}_1-2', 39660),
    'low92': ('pseudoseg_{}_1-16', 39660),
    'low183': ('pseudoseg_{}_1-8', 39660),
    'low366': ('pseudoseg_{}_1-4', 39660),
    'low732': ('pseudoseg_{}_1-2', 39660),
    # All 1,464 images are labeled here, so the unlabeled pool is the augmented set without them.
    'low1464': ('train_{}_1464', 39660),
}
CITYSCAPES = {
    '1over8': ('train_aug_{}_1-8', 44525),
    '1over16': ('train_aug_{}_1-16', 44544),
    '1over4': ('train_aug_{}_1-4', 44480),
    '1over2': ('train_aug_{}_1-2', 44400),
    '1over30': ('train_aug_{}_1-30', 44500),
}


def name_of(method: str, depth: int, data: str, split: str) -> str:
    """File name in OpenMMLab's pattern; the batch is that of one of 4 GPUs."""
    batch = {'supervised': 2, 'cps': 4, 'fpl-cps': 4}.get(method, 6)
    size = {'voc12aug': '512x512', 'voc12': '512x512', 'cityscapes': '800x800'}[data]
    return f'{method}_deeplabv3plus-r{depth}_4xb{batch}-40k_{data}-{split}-{size}.py'


def render(method: str, depth: int, data: str, split: str) -> str:
    """Text of one config."""
    cityscapes = data == 'cityscapes'
    lists, iters = (CITYSCAPES if cityscapes else VOC)[split]
    title = f'{TITLES[method]}, DeepLabV3+ R-{depth}, {"Cityscapes" if cityscapes else "VOC 2012"} {split}.'
    main_data, main_split = ('cityscapes', '1over8') if cityscapes else ('voc12aug', '1over8')
    student = 'model' if method == 'supervised' else 'segmentor'
    if depth == 101:
        body = f"_base_ = './{name_of(method, 50, data, split)}'\n"
        inner = "pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)"
        body += f'model = dict({inner})\n' if student == 'model' else f'model = dict(segmentor=dict({inner}))\n'
        return f'# {title}\n{body}'
    if method in ('fpl-cps', 'fpl-cps-cutmix'):
        base = name_of(method.removeprefix('fpl-'), depth, data, split)
        return (
            f"# {title}\n_base_ = ['./{base}', '../../_base_/methods/fpl.py']\n"
            'model = dict(semi_train_cfg=dict(unsup_loss=_base_.fpl_loss))\n'
        )
    if method == 'cps-cutmix':
        weight = 0.1 if split.startswith('low') else 5.0 if cityscapes else 1.0
        return (
            f"# {title}\n_base_ = ['./{name_of('cps', depth, data, split)}', '../../_base_/methods/cutmix.py']\n"
            f"model = dict(semi_train_cfg=dict(unsup_weight={weight}, unsup_on='unlabeled', mix=_base_.cutmix))\n"
            '# Two unlabeled images make a mixed one.\n'
            'train_dataloader = dict(batch_size=6, sampler=dict(source_ratio=[1, 2]))\n'
            'auto_scale_lr = dict(base_batch_size=24)\n'
        )
    if split != main_split:
        weight = 0.1 if split.startswith('low') else None
        body = f"_base_ = './{name_of(method, depth, main_data, main_split)}'\n"
        if method == 'supervised':
            body += f"train_dataloader = dict(dataset=dict(ann_file='splits/{lists.format('labeled')}.txt'))\n"
        else:
            if weight is not None:
                body += f'model = dict(semi_train_cfg=dict(unsup_weight={weight}))\n'
            body += (
                'train_dataloader = dict(\n    dataset=dict(\n        sources=dict(\n'
                f"            labeled=dict(ann_file='splits/{lists.format('labeled')}.txt'),\n"
            )
            unlabeled = f"ann_file='splits/{lists.format('unlabeled')}.txt'"
            if split.startswith('low'):
                # The published lists of a pair share one image, which then counts as labeled.
                unlabeled = (
                    f"\n                {unlabeled},\n"
                    f"                exclude='splits/{lists.format('labeled')}.txt'"
                )
            body += f'            unlabeled=dict({unlabeled}))))\n'
        if iters != (CITYSCAPES if cityscapes else VOC)[main_split][1]:
            body += _schedule(iters)
        return f'# {title}\n{body}'
    model = 'deeplabv3plus_r50_cityscapes' if cityscapes else 'deeplabv3plus_r50'
    semi, prefix = ('', '') if method == 'supervised' else ('_semi', 'cps_')
    body = (
        "_base_ = [\n"
        f"    '../../_base_/models/{prefix}{model}.py',\n"
        f"    '../../_base_/datasets/{'cityscapes' if cityscapes else 'voc2012'}{semi}.py',\n"
        "    '../../_base_/schedules/cps_40k.py',\n"
        "    '../../_base_/default_runtime.py',\n]\n"
    )
    if method == 'cps':
        weight = 6.0 if cityscapes else 1.5
        body += f"model = dict(semi_train_cfg=dict(unsup_weight={weight}, unsup_on='all'))\n"
        body += 'auto_scale_lr = dict(base_batch_size=16)\n'
    if cityscapes:
        body += 'optim_wrapper = dict(optimizer=dict(lr=0.02))\n'
    return f'# {title}\n{body}{_schedule(iters)}'


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


def metafile(configs: list[str]) -> str:
    """Text of configs/fpl/metafile.yml.

    Args:
        configs: Paths below configs/fpl.
    """
    data = {'camvid': 'CamVid', 'voc': 'PASCAL VOC 2012', 'cityscapes': 'Cityscapes'}
    lines = [
        'Collections:',
        '  - Name: FPL',
        '    Metadata:',
        f'      Training Data: [{", ".join(data.values())}]',
        '      Training Techniques: [SGD with momentum, Cross pseudo supervision, Fuzzy positive learning]',
        '    Paper:',
        '      Title: Fuzzy Positive Learning for Semi-supervised Semantic Segmentation',
        '    README: configs/fpl/README.md',
        'Models:',
    ]
    for path in configs:
        lines += [f'  - Name: {Path(path).stem}', '    In Collection: FPL', f'    Config: configs/fpl/{path}']
    return '\n'.join(lines) + '\n'


def main(argv: list[str] | None = None) -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true', help='only say which files differ')
    args = parser.parse_args(argv)
    root = Path(__file__).resolve().parents[2] / 'configs' / 'fpl'
    files = all_configs()
    camvid = [path.relative_to(root).as_posix() for path in sorted((root / 'camvid').glob('*.py'))]
    files['metafile.yml'] = metafile(camvid + sorted(files))
    stale = [name for name, text in files.items()
             if not (root / name).exists() or (root / name).read_text(encoding='utf-8') != text]
    known = set(files)
    orphans = [
        path.relative_to(root).as_posix()
        for folder in ('voc', 'cityscapes')
        for path in (root / folder).glob('*.py')
        if path.relative_to(root).as_posix() not in known
    ]
    if args.check:
        for name in stale + orphans:
            print(f'differs: configs/fpl/{name}')
        return int(bool(stale or orphans))
    for name in stale:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(files[name], encoding='utf-8')
    print(f'{len(stale)} of {len(files)} files written' + (f'; not from here: {orphans}' if orphans else ''))
    return 0


if __name__ == '__main__':
    sys.exit(main())
