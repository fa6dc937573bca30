"""Gradient surgery in two processes ends in the weights of one process with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

WORKER = Path(__file__).with_name('surgery_worker.py')


def weights(processes: int, folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    out, root = folder / f'{processes}.pth', Path(__file__).resolve().parents[2]
    env = dict(os.environ, PYTHONPATH=f'{root}{os.pathsep}{os.environ.get("PYTHONPATH", "")}', OMP_NUM_THREADS='1')
    command = [sys.executable, '-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={processes}']
    done = subprocess.run([*command, str(WORKER), str(out)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return torch.load(out, weights_only=True)


@pytest.mark.dist
def test_two_processes_equal_one(tmp_path: Path) -> None:
    one, two = (weights(processes, tmp_path) for processes in (1, 2))
    assert len(one) == 11 and one.keys() == two.keys()
    exact = one['exact-False']['encoder.0.weight']
    for case, expected in one.items():
        if case not in ('bucket_view', 'exact-True', 'exact-False'):
            assert not torch.allclose(expected['encoder.0.weight'], exact, atol=1e-5), f'{case} changes nothing'
        for name, value in expected.items():
            if not name.startswith('sometimes'):
                torch.testing.assert_close(two[case][name], value, atol=1e-6, rtol=1e-5,
                                           msg=lambda text, c=case, n=name: f'{c}, {n}: {text}')
        assert torch.equal(two[case]['never.weight'], one['exact-False']['never.weight'])
