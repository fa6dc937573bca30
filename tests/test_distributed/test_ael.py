"""AEL on two processes: the gradients of one process with the whole batch, and the same banks on both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmseg')
WORKER = Path(__file__).with_name('ael_worker.py')


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
    assert one.keys() == first.keys() == second.keys() and len(one) == 24
    for key, expected in one.items():
        if key.endswith('.gradient'):
            scale = torch.cat([grad.flatten() for grad in expected.values()]).norm()
            assert scale > 1e-3, key
            difference = torch.cat([(first[key][name] - grad).flatten() for name, grad in expected.items()]).norm()
            assert difference / scale < 1e-5, f'{key}: relative difference {difference / scale:.2e}'
            continue
        for name, value in expected.items():
            assert torch.equal(first[key][name], second[key][name]), f'{key}: {name} differs between the ranks'
            torch.testing.assert_close(first[key][name], value, msg=lambda m, n=f'{key}: {name}': f'{n}: {m}')
    assert one['ael.2.bank']['presence_bank.presence'].any(dim=0).sum() >= 8
    assert one['ael.2.bank']['confidence_bank.confidence'].unique().numel() == 4
