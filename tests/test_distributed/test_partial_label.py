"""Partial-label classifiers on two processes: gradients, targets, prototypes and queue of one with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmpretrain')
WORKER = Path(__file__).with_name('partial_label_worker.py')
CASES = ('rgd_pll', 'cc', 'proden', 'proden_teacher', 'lws', 'cavl', 'crdpll', 'pico')


def run(processes: int, folder: Path, root: Path) -> list[dict[str, dict[str, torch.Tensor]]]:
    out = folder / f'{processes}.pth'
    env = dict(os.environ, PYTHONPATH=f'{root}{os.pathsep}{os.environ.get("PYTHONPATH", "")}', OMP_NUM_THREADS='1')
    command = [sys.executable, '-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={processes}']
    done = subprocess.run([*command, str(WORKER), str(out)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return [torch.load(f'{out}.{rank}', weights_only=True) for rank in range(processes)]


@pytest.mark.dist
def test_two_processes_equal_one(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    (one,), (first, second) = run(1, tmp_path, root), run(2, tmp_path, root)
    assert {key.split('.')[0] for key in one} == set(CASES) and one.keys() == first.keys() == second.keys()
    for key, expected in one.items():
        if key.endswith('.gradient'):
            scale = torch.cat([grad.flatten() for grad in expected.values()]).norm()
            difference = torch.cat([(first[key][name] - grad).flatten() for name, grad in expected.items()]).norm()
            assert scale > 1e-3 and difference / scale < 1e-5, f'{key}: relative difference {difference / scale:.2e}'
        elif key.endswith('.state'):
            for name, value in expected.items():
                assert torch.equal(first[key][name], second[key][name]), f'{key}: {name} differs between the ranks'
                torch.testing.assert_close(first[key][name], value, msg=lambda m, n=f'{key}: {name}': f'{n}: {m}')
    for case in ('proden', 'pico'):
        rows = one[f'{case}.3.state']['objective.targets.values']
        assert ((rows > 0) & (rows < 1)).any() and one[f'{case}.3.state']['objective.targets.values'].sum() > 3
    assert (one['pico.3.state']['objective.queue_labels'] >= 0).all()
