"""Every shipped config of gradient surgery parses, and its patterns fit the model's losses and parameters."""

from pathlib import Path

import pytest

pytest.importorskip('mmseg')
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS

ROOT = Path(__file__).resolve().parents[2]
SEGMENTATION = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / 'configs/rgd_pll/camvid').rglob('*.py'))


@pytest.mark.parametrize('name', SEGMENTATION)
def test_surgery_fits_the_segmentor(name: str) -> None:
    config = Config.fromfile(str(ROOT / name))
    init_default_scope('mmseg')
    model = MODELS.build(config.model)
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    wrapper.initialize_count_status(model, 0, config.train_cfg.max_iters)
    layout = wrapper._layout
    assert len(layout.shared) == len(list(model.student.parameters())) and not layout.others
    assert wrapper.optimizer.defaults['lr'] == Config.fromfile(
        str(ROOT / 'configs/_base_/schedules/cpu_2k.py')).optim_wrapper.optimizer.lr
