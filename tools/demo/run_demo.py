"""Train the supervised baseline, CPS and CPS + FPL on a small data set, and show what the unlabeled images bring.

python tools/demo/run_demo.py --work-dir work_dirs/demo                                   (shapes, drawn here)
python tools/demo/run_demo.py --work-dir work_dirs/demo --data camvid --data-root PATH    (street scenes)

Stopped, it continues where it was; finished, it shows its results again. Runs with other settings get other folders.
"""

import argparse
import hashlib
import signal
import sys
from pathlib import Path
from typing import Any

from make_shapes import make_shapes
from mmengine.config import Config

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO), str(REPO / 'benchmarks')]  # a demo is a grid of one seed, run by the same harness

from proof_harness import report  # noqa: E402
from proof_harness.execute import Executor, write_json  # noqa: E402
from proof_harness.grid import Grid, Row  # noqa: E402

SYNTHETIC = dict(train=200, val=40, labeled=6, size=96, seed=0)
CAMVID = 'configs/fpl/camvid'
# Of each data set: the variable by which its configs find it, iterations (None = the configs'), and the configs.
DATA: dict[str, dict[str, Any]] = {
    'synthetic': dict(
        env='SHAPES_ROOT',
        iters=None,
        title='Shapes over textures, 6 of 200 training images labeled',
        configs=dict(
            supervised='configs/demo/supervised_shapes.py',
            cps='configs/demo/cps_shapes.py',
            cps_fpl='configs/demo/cps_fpl_shapes.py')),
    'camvid': dict(
        env='CAMVID_ROOT',
        iters=300,
        title='CamVid street scenes, 46 of 367 training images labeled',
        configs=dict(
            supervised=f'{CAMVID}/supervised_resnet18w16_1xb4-2k_camvid-1over8.py',
            cps=f'{CAMVID}/cps_resnet18w16_1xb12-2k_camvid-1over8.py',
            cps_fpl=f'{CAMVID}/fpl-cps_resnet18w16_1xb12-2k_camvid-1over8.py')),
}
TITLES = dict(supervised='supervised', cps='CPS', cps_fpl='CPS + FPL')


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--work-dir', type=Path, default=Path('work_dirs/demo'), help='default: %(default)s')
    parser.add_argument('--data', choices=list(DATA), default='synthetic', help='default: %(default)s')
    parser.add_argument('--data-root', type=Path, help='the data set; synthetic data is made when this is left out')
    parser.add_argument('--iters', type=int, help='iterations of each training (default: 400 synthetic, 300 camvid)')
    parser.add_argument('--images', type=int, default=5, help='rows of the picture panel (default: %(default)s)')
    return parser.parse_args(argv)


def shortened(config: str, iters: int | None) -> dict[str, Any]:
    """Options that make a config's schedule ``iters`` iterations long, validated ten times.

    Args:
        config: Path of the config, relative to the repository.
        iters: Iterations; ``None`` leaves the config as it is.
    """
    if iters is None:
        return {}
    options = {
        'train_cfg.max_iters': iters, 'train_cfg.val_interval': max(1, iters // 10), 'param_scheduler.0.end': iters,
        'default_hooks.checkpoint.interval': max(1, iters // 4),
        'default_hooks.logger.interval': max(1, min(10, iters // 20))
    }  # yapf: disable
    # What counts iterations shrinks with them; otherwise the unsupervised loss would begin late, or after the end.
    cfg = Config.fromfile(REPO / config, import_custom_modules=False)
    semi_train_cfg = cfg.model.get('semi_train_cfg') or {}
    for key in ('unsup_begin', 'unsup_ramp'):
        if key in semi_train_cfg:
            options[f'model.semi_train_cfg.{key}'] = semi_train_cfg[key] * iters // cfg.train_cfg.max_iters
    return options


def find_data(args: argparse.Namespace) -> Path:
    """The data set's folder; shapes are made where none is named.

    Raises:
        ValueError: If real data is asked for without saying where it is.
        FileNotFoundError: If the folder is not such a data set.
    """
    root = args.data_root
    if root is None:
        if args.data != 'synthetic':
            raise ValueError(f'--data {args.data} needs --data-root, the folder with img_dir and ann_dir')
        root = args.work_dir / 'synthetic' / 'data'
        written = make_shapes(root, **SYNTHETIC)
        print(f'data: {"made" if written else "found"} {SYNTHETIC["train"]} + {SYNTHETIC["val"]} images in {root}')
    for folder in ('img_dir/train', 'img_dir/val', 'ann_dir/train', 'ann_dir/val'):
        if not (root / folder).is_dir():
            raise FileNotFoundError(f'--data-root: {root} has no {folder}')
    return root.resolve()


def make_grid(args: argparse.Namespace) -> Grid:
    """The demo's three runs, in a folder of their own for each variant of their settings."""
    data = DATA[args.data]
    iters = data['iters'] if args.iters is None else args.iters
    grid = Grid(
        name='demo', repo=REPO, title=data['title'], rows=[], seeds=[0], metric='mIoU',
        curves=['unsup_mean_k', 'unsup_pseudo_acc'], data_root=dict(env=data['env']))  # yapf: disable
    grid.rows = [Row(name, TITLES[name], config, shortened(config, iters), grid)
                 for name, config in data['configs'].items()]
    digest = hashlib.sha256(''.join(row.fingerprint().digest for row in grid.rows).encode()).hexdigest()
    folder = (args.work_dir / args.data / f'run-{digest[:8]}').resolve()
    grid.results, grid.work_root = folder / 'results', folder / 'training'
    return grid


def table(grid: Grid) -> str:
    """Method, mIoU and time, as text; mIoU is of the last validation, so no row profits from a lucky one."""
    rows = [('method', 'mIoU', 'gain', 'time')]
    first = None
    for row in grid.rows:
        record = grid.read_results()[row.name][grid.seeds[0]]
        last, seconds = record['summary']['last'], round(record['minutes'] * 60)
        first = last if first is None else first
        gain = '' if row is grid.rows[0] else f'{last - first:+.1f}'
        rows.append((row.title, f'{last:.1f}', gain, f'{seconds // 60}:{seconds % 60:02}'))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ['  '.join(cell.ljust(width) if column == 0 else cell.rjust(width)
                       for column, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows]
    return '\n'.join([grid.title, '', lines[0], '-' * len(lines[0]), *lines[1:], '',
                      'One seed: a demo, no measurement. Tables of several seeds are in configs/fpl/README.md.'])


def draw_panel(grid: Grid, path: Path, data_root: Path, count: int) -> None:
    """Draw unlabeled training images with truth, pseudo label, K and prediction of the last row's model.

    Args:
        grid: The finished demo.
        path: Picture to write.
        data_root: The data set.
        count: Number of images.
    """
    import os

    import numpy as np
    import torch
    from mmengine.dataset import pseudo_collate
    from mmengine.registry import init_default_scope
    from mmengine.runner import load_checkpoint
    from mmseg.registry import DATASETS, MODELS
    from PIL import Image

    from mmssl.functional.fpl import fuzzy_positive_assignment
    from mmssl.utils.stack import trust_checkpoints
    from mmssl.visualization import draw_panels, pseudo_label_row
    trust_checkpoints()
    row = grid.rows[-1]
    os.environ[grid.data_root['env']] = str(data_root)
    cfg = row.resolve()
    init_default_scope(cfg.default_scope)
    work_dir = grid.work_root / f'{row.name}-seed{grid.seeds[0]}' / row.fingerprint().digest[:12]
    model = MODELS.build(cfg.model)
    load_checkpoint(model, (work_dir / 'last_checkpoint').read_text(encoding='utf-8').strip(), map_location='cpu')
    model.eval()
    # Unlabeled images as validation sees its own: no augmentation, and with the truth, for the picture alone.
    source = cfg.train_dataloader.dataset.sources.unlabeled
    dataset = DATASETS.build(dict(
        cfg.val_dataloader.dataset, ann_file=source.ann_file,
        data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train')))  # yapf: disable
    options = cfg.model.semi_train_cfg.unsup_loss
    rows = []
    for index in np.linspace(0, len(dataset) - 1, count).astype(int):
        batch = model.data_preprocessor(pseudo_collate([dataset[int(index)]]), training=False)
        sample = batch['data_samples'][0]
        with torch.no_grad():
            prediction, target = (student.predict(batch['inputs'], [sample.clone()])[0].seg_logits.data
                                  for student in (model.student1, model.student2))
        k = fuzzy_positive_assignment(target[None], options.cum_prob, options.max_k).k[0].float()
        height, width = prediction.shape[-2:]
        image = Image.open(sample.img_path).convert('RGB').resize((width, height))
        truth = sample.gt_sem_seg.data[0].numpy().astype(np.int64)
        rows.append(pseudo_label_row(
            np.asarray(image), target.argmax(dim=0).numpy(), k.numpy(), prediction.argmax(dim=0).numpy(), truth,
            max_k=options.max_k or len(dataset.metainfo['classes']) - 1))  # yapf: disable
    picture = draw_panels(rows, dataset.metainfo['classes'], dataset.metainfo['palette'])
    Image.fromarray(picture).save(path)


def interrupt(*_: Any) -> None:
    """Make a `kill` of the demo what Ctrl-C is, or its training, which has a session of its own, would live on."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would break off the stopping
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Make the data, train, and show.

    Returns:
        The exit code.

    Raises:
        ValueError: If a number makes no demo.
    """
    args = parse_args(argv)
    if args.iters is not None and args.iters < 10:
        raise ValueError(f'--iters must be at least 10, got {args.iters}')
    if args.images < 1:
        raise ValueError(f'--images must be at least 1, got {args.images}')
    data_root = find_data(args)
    grid = make_grid(args)
    folder = grid.results.parent
    print(f'results: {folder}', flush=True)
    executor = Executor(grid, grid.rows, grid.seeds, jobs=1, data_root=str(data_root), interval=10.)
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        failed = executor.execute()
    except KeyboardInterrupt:
        print('\nstopped; the same command continues from the last checkpoint', flush=True)
        return 130
    finally:
        signal.signal(signal.SIGTERM, previous)
    if failed:
        print('FAILED: ' + ', '.join(run.name for run in failed), file=sys.stderr)
        return 1
    text = table(grid)
    (folder / 'table.txt').write_text(text + '\n', encoding='utf-8')
    write_json(folder / 'settings.json', dict(data=args.data, data_root=str(data_root), iters=args.iters))
    pictures = dict(panel=folder / 'panel.png', curves=folder / 'curves.png')
    grid.plots = str(pictures['curves'])
    report.plot(grid)
    draw_panel(grid, pictures['panel'], data_root, args.images)
    print(f'\n{text}\n\npictures:  {pictures["panel"]}  (image, truth, pseudo label, K, prediction)\n'
          f'           {pictures["curves"]}  (mIoU, mean K and pseudo-label accuracy over time)\n'
          f'table:     {folder / "table.txt"}\nmodels:    {grid.work_root}')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (ValueError, FileNotFoundError, FileExistsError) as error:
        sys.exit(f'error: {error}')
