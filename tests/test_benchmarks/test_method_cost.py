"""The benchmark that compares whole methods."""

import json
from pathlib import Path

import method_cost
import pytest
from mmengine.config import Config

CAMVID = Path(__file__).resolve().parents[2] / 'configs/fpl/camvid'
SUPERVISED = CAMVID / 'supervised_resnet18w16_1xb4-2k_camvid-1over8.py'
MEAN_TEACHER = CAMVID / 'mean-teacher-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'


def test_without_a_baseline_nothing_is_measured(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        method_cost.main([str(MEAN_TEACHER)])
    assert 'no config is named supervised*' in capsys.readouterr().err


def test_what_only_looks_is_left_out_and_the_unsupervised_loss_is_whole(tmp_path: Path) -> None:
    cfg = method_cost.prepared(str(MEAN_TEACHER), 5, str(tmp_path), 3)
    assert [hook['type'] for hook in cfg.custom_hooks] == ['mmssl.MeanTeacherHook']
    options = cfg.model.semi_train_cfg
    assert options.unsup_begin == options.unsup_ramp == 0
    assert options.unsup_weight == Config.fromfile(MEAN_TEACHER).model.semi_train_cfg.unsup_weight
    assert cfg.train_cfg.max_iters == 5 and 'val_cfg' not in cfg and cfg.randomness == dict(seed=3)


@pytest.mark.slow
def test_figures_of_a_real_training(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('CAMVID_ROOT', str(shared_data / 'camvid'))
    out = tmp_path / 'cost.json'
    assert method_cost.main([str(MEAN_TEACHER), str(SUPERVISED), '--rounds', '1', '--iterations', '3', '--warm-up', '1',
                             '--out', str(out)]) == 0  # yapf: disable
    rows = {row['what']: row for row in json.loads(out.read_text())['rows']}
    step, update = rows['mean-teacher-cutmix: iteration'], rows['mean-teacher-cutmix: update of the teacher']
    assert step['value'] > step['baseline_value'] == rows['supervised: iteration']['value'] > 0
    assert 0 < update['value'] < update['baseline_value'] == step['value']
    assert rows['mean-teacher-cutmix: peak memory']['value'] > 0
