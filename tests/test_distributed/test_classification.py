"""Classifiers on two processes: the gradients of one process with the whole batch, and the same statistics on both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmpretrain')
WORKER = Path(__file__).with_name('classification_worker.py')


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
    assert one.keys() == first.keys() == second.keys() and len(one) == 16 * 3 * 3
    for key, expected in one.items():
        if key.endswith('.gradient'):
            scale = torch.cat([grad.flatten() for grad in expected.values()]).norm()
            assert scale > 1e-3, key
            difference = torch.cat([(first[key][name] - grad).flatten() for name, grad in expected.items()]).norm()
            assert difference / scale < 1e-5, f'{key}: relative difference {difference / scale:.2e}'
        elif key.endswith('.state'):
            for name, value in expected.items():
                assert torch.equal(first[key][name], second[key][name]), f'{key}: {name} differs between the ranks'
                torch.testing.assert_close(first[key][name], value, msg=lambda m, n=f'{key}: {name}': f'{n}: {m}')
    # What is compared is worth it: some pseudo labels count and some do not, and not as many on both ranks.
    for case in ('fixmatch', 'freematch', 'adamatch', 'flexmatch'):
        ratios = [[rank[f'{case}.{step}.log']['unsup_mask_ratio'] for rank in (first, second)] for step in range(3)]
        assert any(a != b and 0 < min(a, b) < 1 for a, b in ratios), (case, ratios)
    # The averaged layer has left the one that it was copied from, by what both ranks say.
    for case, steps in (('layermatch', [1, 2, 3]), ('layermatch_selected', [0, 1, 2])):
        assert [int(one[f'{case}.{step}.state']['average_head.step']) for step in range(3)] == steps
    weights = [one[f'layermatch.{step}.state']['average_head.student.weight'] for step in range(3)]
    assert (weights[1] - weights[0]).norm() > 1e-3
    table = one['flexmatch.2.state']['threshold.last_prediction']
    assert (table >= 0).sum() > 10 and (table < 0).any()
