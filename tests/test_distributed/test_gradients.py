"""Two processes give the gradients of one process with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmseg')
WORKER = Path(__file__).with_name('gradients_worker.py')


def gradients(processes: int, folder: Path, root: Path) -> dict[str, dict[str, torch.Tensor]]:
    out = folder / f'{processes}.pth'
    env = dict(os.environ, PYTHONPATH=f'{root}{os.pathsep}{os.environ.get("PYTHONPATH", "")}', OMP_NUM_THREADS='1')
    command = [sys.executable, '-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={processes}']
    done = subprocess.run([*command, str(WORKER), str(out)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return torch.load(out, weights_only=True)


@pytest.mark.dist
def test_two_processes_equal_one(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    one, two = (gradients(processes, tmp_path, root) for processes in (1, 2))
    assert one.keys() == two.keys() and len(one) == 39
    for case, expected in one.items():
        scale = torch.cat([grad.flatten() for grad in expected.values()]).norm()
        assert scale > 1e-3, case
        difference = torch.cat([(two[case][name] - grad).flatten() for name, grad in expected.items()]).norm()
        assert difference / scale < 1e-5, f'{case}: relative difference {difference / scale:.2e}'
