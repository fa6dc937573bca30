"""A throw-away project with a grid of two rows and a train script that only pretends to train."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / 'benchmarks'
sys.path.insert(0, str(BENCHMARKS))

# Same command line and same files as mmengine's runner leaves behind, without the seconds that importing torch costs.
FAKE_TRAIN = """
import argparse, json, os, pathlib, sys, time
parser = argparse.ArgumentParser()
parser.add_argument('config')
parser.add_argument('--work-dir', type=pathlib.Path)
parser.add_argument('--resume', action='store_true')
parser.add_argument('--cfg-options', nargs='+', default=[])
args = parser.parse_args()
options = dict(option.split('=', 1) for option in args.cfg_options)
seed, offset = int(options['randomness.seed']), float(options.get('model.offset', 0))
pointer = args.work_dir / 'last_checkpoint'
start = int(pathlib.Path(pointer.read_text()).stem.split('_')[1]) if args.resume else 0
print('threads', os.environ.get('OMP_NUM_THREADS'), 'root', os.environ.get('FAKE_ROOT'), 'start', start, flush=True)
vis = args.work_dir / f'{time.time_ns()}' / 'vis_data'
vis.mkdir(parents=True)
with open(vis / 'scalars.json', 'w') as log:
    for iteration in range(start + 1, 21):
        if iteration % 2 == 0:
            log.write(json.dumps(dict(lr=0.1, loss=1 / iteration, unsup_mean_k=1 + iteration / 20,
                                      time=0.01 * iteration, data_time=0.0, iter=iteration, step=iteration)) + '\\n')
        if iteration % 5 == 0:
            (args.work_dir / f'iter_{iteration}.pth').write_text('')
            pointer.write_text(str(args.work_dir / f'iter_{iteration}.pth'))
            metrics = dict(aAcc=90.0, mIoU=iteration + seed + offset + 1e-7, ECE=0.1 + seed / 1000, time=0.1,
                           step=iteration)
            log.write(json.dumps(metrics) + '\\n')
        log.flush()
        if os.environ.get('FAKE_DIE') == f'{args.work_dir.parent.name}/{iteration}' and start == 0:
            sys.exit('boom: the fake run dies here')
        time.sleep(float(os.environ.get('FAKE_SLEEP', 0)))
"""

CONFIG = """
data_root = '{{$FAKE_ROOT:data/set}}'
model = dict(type='Net', width=4, offset=0)
train_cfg = dict(type='IterBasedTrainLoop', max_iters=20, val_interval=5)
train_dataloader = dict(dataset=dict(data_root=data_root, ann_file='configs/labeled.txt'))
work_dir = '/somewhere'
"""

GRID = """
title = 'A toy proof'
rows = [
    dict(name='plain', title='Plain', config='configs/toy.py'),
    dict(name='better', title='Better', config='configs/toy.py', cfg_options={'model.offset': 10}),
]
seeds = [0, 2]
metric = 'mIoU'
curves = ['unsup_mean_k']
data_root = dict(env='FAKE_ROOT', default='data/set')
readme = 'configs/README.md'
plots = 'configs/toy.png'
"""

README = 'before\n\n<!-- proof:toy begin -->\nold\n<!-- proof:toy end -->\n\nafter\n'


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's root folder."""
    files = {
        'tools/train.py': FAKE_TRAIN, 'configs/toy.py': CONFIG, 'configs/labeled.txt': 'a\nb\n',
        'configs/README.md': README, 'benchmarks/grids/toy.py': GRID
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for variable in ('FAKE_ROOT', 'FAKE_DIE', 'FAKE_SLEEP'):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path
