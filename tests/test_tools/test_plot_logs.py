"""tools/analysis/plot_logs.py: reading logs, joining resumed runs, seeds as a band, errors that help."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location('plot_logs', repo_root / 'tools/analysis/plot_logs.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_log(work_dir: Path, lines: list[dict], started: str = '20260101_000000') -> Path:
    path = work_dir / started / 'vis_data' / 'scalars.json'
    path.parent.mkdir(parents=True)
    path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    return path


def train(step: int, **values: float) -> dict:
    return dict(lr=0.1, time=0.5, **values, iter=step, step=step)


def run_lines(steps: range, offset: float = 0.0) -> list[dict]:
    lines: list[dict] = []
    for step in steps:
        lines.append(train(step, loss=1 / step + offset, unsup_mean_k=1.0 + offset))
        if step % 20 == 0:
            lines.append(dict(mIoU=step + offset, time=0.01, step=step))
    return lines


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_log(tmp_path / 'runs/fpl', run_lines(range(10, 101, 10)))
    return tmp_path / 'runs/fpl'


def test_writes_a_picture(tool: ModuleType, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / 'plot.png'
    assert tool.main([str(run), '--keys', 'mIoU', 'unsup_*', '--out', str(out), '--title', 'x', '--smooth', '3']) == 0
    with Image.open(out) as picture:
        assert picture.size[0] > picture.size[1] and len(set(picture.convert('L').getdata())) > 20
    assert 'mIoU: fpl: ' in capsys.readouterr().out


def test_curves_of_both_kinds_of_lines(tool: ModuleType, run: Path) -> None:
    curves = tool.read_curves(run)
    assert curves['mIoU'] == {20: 20, 40: 40, 60: 60, 80: 80, 100: 100}
    assert curves['loss'][50] == pytest.approx(0.02) and set(curves['time'].values()) == {0.5}
    assert 'iter' not in curves and 'step' not in curves


def test_resumed_run_replaces_what_it_did_again(tool: ModuleType, run: Path) -> None:
    # The first part went to 100; the second was resumed from 50 and logs at other steps.
    second = [train(55, loss=7), train(75, loss=8), dict(mIoU=-1, step=80), dict(mIoU=-2, step=120), train(125, loss=9)]
    write_log(run, second, started='20260102_000000')
    curves = tool.read_curves(run)
    assert list(curves['loss']) == [10, 20, 30, 40, 50, 55, 75, 125]
    assert curves['mIoU'] == {20: 20, 40: 40, 80: -1, 120: -2}


def test_test_runs_in_the_work_dir_are_left_out(tool: ModuleType, run: Path) -> None:
    write_log(run, [dict(mIoU=99.0, step=0)], started='20260103_000000')
    assert 99.0 not in tool.read_curves(run)['mIoU'].values() and len(tool.read_curves(run)['mIoU']) == 5


def test_epoch_based_evaluations_get_iterations(tool: ModuleType, tmp_path: Path) -> None:
    lines = []
    for epoch in (1, 2):
        lines += [dict(lr=0.1, loss=1.0, epoch=epoch, iter=i + 10 * epoch, step=i + 10 * epoch) for i in (0, 9)]
        lines.append(dict(mIoU=30.0 + epoch, step=epoch))
    write_log(tmp_path / 'run', lines)
    assert tool.read_curves(tmp_path / 'run')['mIoU'] == {19: 31, 29: 32}


def test_last_line_may_be_cut_off(tool: ModuleType, run: Path) -> None:
    log = next(run.glob('*/vis_data/scalars.json'))
    complete = tool.read_curves(run)
    log.write_text(log.read_text() + '{"loss": 0.')
    assert tool.read_curves(run) == complete
    log.write_text('{"loss"\n' + log.read_text())
    with pytest.raises(ValueError, match='line 1'):
        tool.read_curves(run)


def test_labels_are_as_short_as_possible(tool: ModuleType, tmp_path: Path) -> None:
    log = write_log(tmp_path / 'c' / 'run', [train(1, loss=1)])
    paths = [tmp_path / 'a' / 'run', tmp_path / 'b' / 'run', log]
    assert tool.label_runs(paths, None) == ['a/run', 'b/run', 'c/run']
    assert tool.label_runs(paths[:1], None) == ['run']
    assert tool.label_runs(paths, ['x', 'y', 'z']) == ['x', 'y', 'z']


def test_groups_and_their_statistics(tool: ModuleType) -> None:
    labels = ['cps_seed0', 'cps_seed1', 'fpl-seed12', 'sup/seed3', 'sup/seed4', 'seed5']
    assert tool.group_runs(labels, tool.SEED) == {'cps': [0, 1], 'fpl': [2], 'sup': [3, 4], 'seed5': [5]}
    assert tool.group_runs(['a0', 'a1'], r'\d') == {'a': [0, 1]}
    steps, means, deviations = tool.join_group([{1: 1.0, 2: 2.0, 3: 9.0}, {1: 3.0, 2: 2.0}])
    assert (steps, means) == ([1, 2], [2.0, 2.0]) and deviations == pytest.approx([2**0.5, 0])


def test_group_is_drawn(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        write_log(tmp_path / f'cps_seed{seed}', run_lines(range(10, 101, 10), offset=seed))
    runs = [str(tmp_path / f'cps_seed{seed}') for seed in range(3)]
    assert tool.main([*runs, '--group', '--keys', 'mIoU', '--out', str(tmp_path / 'p.svg')]) == 0
    assert 'mIoU: cps (3 runs): 101 ± 1 at 100' in capsys.readouterr().out


def test_key_of_one_run_only(tool: ModuleType, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / 'supervised', [train(1, loss=1.0), train(2, loss=0.5)])
    arguments = [str(run), str(tmp_path / 'supervised'), '--out', str(tmp_path / 'p.png'), '--keys']
    assert tool.main([*arguments, 'unsup_mean_k', 'loss']) == 0
    assert 'unsup_mean_k: supervised' not in capsys.readouterr().out


def test_smoothing(tool: ModuleType) -> None:
    assert tool.smooth([1.0, 2.0, float('nan'), 4.0], 2) == [1.0, 1.5, 2.0, 4.0]


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['RUN', '--keys', 'mIuO'], ["'mIuO'", 'mIoU', 'unsup_mean_k', 'loss']),
        (['nowhere', '--keys', 'mIoU'], ['nowhere', 'neither']),
        (['EMPTY', '--keys', 'mIoU'], ['empty', 'scalars.json']),
        (['RUN', 'RUN', '--keys', 'mIoU'], ['twice', '--labels']),
        (['RUN', '--keys', 'mIoU', '--labels', 'a', 'b'], ['2 labels for 1 runs']),
        (['RUN', '--keys', 'mIoU', '--group', '('], ['--group', 'regular expression']),
        (['RUN', '--keys', 'mIoU', '--out', 'no/where.png'], ['--out', "'no'"]),
        (['RUN', '--keys', 'mIoU', '--out', 'plot.xyz'], ['xyz']),
        (['TEXT', '--keys', 'mIoU'], ['text.json, line 1']),
    ],
)
def test_user_errors_are_one_line(
    tool: ModuleType, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str],
    expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'text.json').write_text('hello\nworld\n')
    places = {'RUN': str(run), 'EMPTY': 'empty', 'TEXT': 'text.json'}
    arguments = [places.get(argument, argument) for argument in arguments]
    if '--out' not in arguments:
        arguments += ['--out', 'plot.png']
    assert tool.main(arguments) == 2
    message = capsys.readouterr().err
    assert message.count('\n') == 1 and all(text in message for text in expected), message
    assert not list(tmp_path.glob('plot.*'))


def test_overlay_draws_all_classes_into_one_panel(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [f'unsup_class_share/{name}' for name in ('cat', 'dog')]
    write_log(tmp_path / 'run', [train(step, **dict.fromkeys(keys, step / 100)) for step in (10, 20)])
    runs = [tool.read_curves(tmp_path / 'run')]
    assert tool.split_panels(['unsup_class_share/*'], runs, overlay=True) == {'unsup_class_share/*': keys}
    assert list(tool.split_panels(['unsup_class_share/*'], runs, overlay=False)) == keys
    sizes = []
    for options in ([], ['--overlay']):
        out = tmp_path / f'plot{len(options)}.png'
        assert tool.main([str(tmp_path / 'run'), '--keys', 'unsup_class_share/*', '--out', str(out), *options]) == 0
        with Image.open(out) as picture:
            sizes.append(picture.size)
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if 'dog' in line] == ['unsup_class_share/dog: run: 0.2 at 20']
    assert sizes[0][0] == 2 * sizes[1][0]
