"""``tools/demo/run_demo.py``: what it runs, says and refuses, and one short run of the whole."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mmengine.config import Config
from PIL import Image

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / 'tools/demo'))
spec = importlib.util.spec_from_file_location('run_demo', REPO / 'tools/demo/run_demo.py')
demo = importlib.util.module_from_spec(spec)
spec.loader.exec_module(demo)
import make_shapes  # noqa: E402

TINY = dict(demo.SYNTHETIC, train=12, val=3, labeled=4)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, 'SYNTHETIC', TINY)


@pytest.mark.slow
@pytest.mark.dist
def test_the_demo_trains_tabulates_and_draws(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert demo.main(['--work-dir', str(tmp_path), '--iters', '10', '--images', '2']) == 0
    out = capsys.readouterr().out
    for title in demo.TITLES.values():
        assert title in out
    folder = next((tmp_path / 'synthetic').glob('run-*'))
    assert f'{folder}' in out and (folder / 'table.txt').read_text().strip() in out
    for name in ('panel.png', 'curves.png'):
        assert min(Image.open(folder / name).size) > 200
    for row in ('cps', 'cps_fpl'):  # they did learn without labels
        log = next((folder / 'training').glob(f'{row}-seed0/*/*/vis_data/scalars.json')).read_text(encoding='utf-8')
        assert max(json.loads(line).get('unsup_loss', 0) for line in log.splitlines()) > 0
    # again: nothing is trained, nothing replaced
    before = {path: path.stat().st_mtime_ns for path in folder.rglob('*.pth')}
    assert demo.main(['--work-dir', str(tmp_path), '--iters', '10', '--images', '2']) == 0
    assert '3 already done' in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in folder.rglob('*.pth')} == before


def test_each_variant_has_its_own_folder(tmp_path: Path) -> None:
    folders = [demo.make_grid(demo.parse_args(['--work-dir', str(tmp_path), *extra])).results
               for extra in ([], ['--iters', '20'], [], ['--data', 'camvid'])]  # yapf: disable
    assert folders[0] == folders[2] and len(set(folders)) == 3


@pytest.mark.parametrize('iters', [10, 33, 1000])
def test_a_shortened_schedule_is_consistent(iters: int) -> None:
    for data in demo.DATA.values():
        for name in data['configs'].values():
            cfg = Config.fromfile(REPO / name, import_custom_modules=False)
            cfg.merge_from_dict(demo.shortened(name, iters))
            assert cfg.train_cfg.max_iters == cfg.param_scheduler[0].end == iters
            assert iters // cfg.train_cfg.val_interval >= 10
            assert 1 <= cfg.default_hooks.logger.interval <= iters // 2


@pytest.mark.parametrize('args', [[], ['--iters', '10'], ['--iters', '33'], ['--iters', '1000'], ['--data', 'camvid'],
                                  ['--data', 'camvid', '--iters', '10']])  # yapf: disable
def test_most_iterations_of_every_row_use_unlabeled_images(args: list[str], tmp_path: Path) -> None:
    grid = demo.make_grid(demo.parse_args(['--work-dir', str(tmp_path), *args]))
    begins = {}
    for row in grid.rows:
        cfg = row.resolve()
        options = cfg.model.get('semi_train_cfg')
        if options:
            begins[row.name] = options.unsup_begin
            assert options.unsup_begin + options.get('unsup_ramp', 0) < cfg.train_cfg.max_iters / 2
            # As a share of the schedule, it is what the config says.
            whole = Config.fromfile(REPO / row.config, import_custom_modules=False)
            share = whole.model.semi_train_cfg.unsup_begin / whole.train_cfg.max_iters
            assert abs(options.unsup_begin - share * cfg.train_cfg.max_iters) < 1
    assert list(begins) == ['cps', 'cps_fpl']


def test_a_rise_of_the_weight_shrinks_too(tmp_path: Path) -> None:
    base = REPO / 'configs/demo/cps_shapes.py'
    config = tmp_path / 'rising.py'
    config.write_text(f'_base_ = {str(base)!r}\nmodel = dict(semi_train_cfg=dict(unsup_begin=100, unsup_ramp=80))\n')
    options = demo.shortened(str(config), 40)
    assert options['model.semi_train_cfg.unsup_begin'] == 10 and options['model.semi_train_cfg.unsup_ramp'] == 8


def test_the_table_uses_the_last_validation(tmp_path: Path) -> None:
    grid = demo.make_grid(demo.parse_args(['--work-dir', str(tmp_path)]))
    for row, last, minutes in zip(grid.rows, (40., 45.5, 39.9), (0.5, 1.0, 1.55), strict=True):
        demo.write_json(grid.result_path(row, 0), dict(summary=dict(last=last, best=99.), minutes=minutes))
    lines = [line.split() for line in demo.table(grid).splitlines()]
    assert ['supervised', '40.0', '0:30'] in lines
    assert ['CPS', '45.5', '+5.5', '1:00'] in lines
    assert ['CPS', '+', 'FPL', '39.9', '-0.1', '1:33'] in lines  # a loss is shown as one


def test_configs_and_generator_agree() -> None:
    cfg = Config.fromfile(REPO / 'configs/demo/cps_shapes.py', import_custom_modules=False)
    assert tuple(cfg.metainfo.classes) == make_shapes.CLASSES
    assert [list(color) for color in cfg.metainfo.palette] == make_shapes.PALETTE
    assert cfg.model.segmentor.decode_head.num_classes == len(make_shapes.CLASSES)
    defaults = vars(make_shapes.parse_args(['x']))
    assert dict(demo.SYNTHETIC) == {key: defaults[key] for key in demo.SYNTHETIC}


@pytest.mark.parametrize('args, message', [
    (['--iters', '5'], '--iters'),
    (['--images', '0'], '--images'),
    (['--data', 'camvid'], '--data-root'),
    (['--data', 'camvid', '--data-root', '/no/such'], '/no/such has no img_dir/train'),
])
def test_bad_arguments_are_refused(args: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        demo.main(['--work-dir', str(tmp_path), *args])


@pytest.mark.slow
def test_a_kill_stops_the_training_too(tmp_path: Path) -> None:
    script = (f'import sys; sys.path.insert(0, {str(REPO / "tools/demo")!r}); import run_demo; '
              f'run_demo.SYNTHETIC = {TINY!r}; sys.exit(run_demo.main(["--work-dir", {str(tmp_path)!r}]))')
    process = subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE, text=True)
    trainings = f'{tmp_path}/synthetic'
    try:
        deadline = time.time() + 60
        while not (found := _processes(trainings, process.pid)) and time.time() < deadline:
            time.sleep(0.1)
        assert found
        time.sleep(0.5)
        process.terminate()
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 130 and 'stopped; the same command continues' in out
        assert not _processes(trainings, process.pid)
    finally:
        process.kill()
        for pid in _processes(trainings, process.pid):
            os.kill(pid, signal.SIGKILL)


def _processes(text: str, other_than: int) -> list[int]:
    """Processes with a text in their command line."""
    found = []
    for path in Path('/proc').glob('[0-9]*/cmdline'):
        try:
            line = path.read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if text.encode() in line and int(path.parent.name) != other_than:
            found.append(int(path.parent.name))
    return found
