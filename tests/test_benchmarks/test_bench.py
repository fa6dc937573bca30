"""The benchmarks' files, the page made of them, and that each benchmark measures what it says."""

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import bench_results
import bench_table
import pytest
import torch

CONFIG = 'configs/fpl/camvid/fpl-cps-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / 'page.md'
    path.write_text(f'before\n{bench_table.BEGIN}\nold\n{bench_table.END}\nafter\n')
    return path


def save(folder: Path, name: str = 'toy', value: float = 150.) -> None:
    rows = [bench_results.row('a step', value, 'ms', 'its parts', 100.), bench_results.row('speed', 7.25, 'images/s')]
    argv = ['--config', str(bench_results.REPO / 'configs/x.py'), '/on/this machine/data', '--work-dir=/a/run']
    bench_results.save(name, seed=3, threads=2, rows=rows, details=dict(all=[1]),
                       argv=argv,
                       out=folder / f'{name}.json')


def test_a_file_says_what_its_figures_depend_on(tmp_path: Path) -> None:
    save(tmp_path)
    record, = bench_results.read(tmp_path)
    assert record['seed'] == 3 and record['machine']['cpu'] and record['machine']['threads'] == 2
    assert record['versions']['torch'] and record['versions']['numpy'] and len(record['commit']) >= 7
    assert record['date'][:2] == '20' and record['details'] == dict(all=[1])
    assert record['argv'] == ['benchmarks/toy.py', '--config', 'configs/x.py', '.../data', '--work-dir=.../run']


def test_page_and_files_agree_once_it_is_written(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / 'results'
    assert bench_table.main(['--check'], folder, page) == 1
    assert bench_table.main(['--write'], folder, page) == 0
    assert 'Nothing measured yet' in page.read_text() and bench_table.main(['--check'], folder, page) == 0
    save(folder)
    assert bench_table.main(['--check'], folder, page) == 1
    assert bench_table.main(['--write'], folder, page) == 0
    text = page.read_text()
    assert text.startswith('before\n') and text.endswith('\nafter\n') and 'old' not in text
    assert '| a step | 150 ms | its parts: 100 ms | 1.50 |' in text and '| speed | 7.25 images/s |  |  |' in text
    assert '- Command: `python benchmarks/toy.py --config configs/x.py .../data --work-dir=.../run`; seed 3' in text
    assert bench_table.main(['--check'], folder, page) == 0
    save(folder, value=151.)
    assert bench_table.main(['--check'], folder, page) == 1


def test_a_page_without_markers_and_a_file_without_a_seed_are_refused(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / 'results'
    save(folder)
    page.write_text('nothing')
    with pytest.raises(ValueError, match='<!-- bench begin -->'):
        bench_table.main(['--write'], folder, page)
    (folder / 'bad.json').write_text('{"name": "bad"}')
    with pytest.raises(ValueError, match=r'bad\.json lacks .*seed'):
        bench_table.main([], folder, page)


def test_cps_step_measures_a_step_with_unsupervised_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cps_step
    seen = []
    monkeypatch.setattr(cps_step, 'seconds', lambda step, model: seen.append(model) or step() or 1.)
    monkeypatch.chdir(PROJECT)
    out = tmp_path / 'cps_step.json'
    assert cps_step.main(['--config', CONFIG, '--rounds', '1', '--threads', '1', '--out', str(out)]) == 0
    cfg = seen[0].semi_train_cfg
    assert cfg['unsup_begin'] > 0 and seen[0].iteration > cfg['unsup_begin'] + cfg['unsup_ramp']
    record = json.loads(out.read_text())
    assert [row['baseline'] for row in record['rows']] == ['its student passes',
                                                           'its student passes and unsupervised loss']
    # A step without it is refused instead of measured.
    monkeypatch.setattr(type(seen[0]), 'next_unsup_weight', lambda self: 0.)
    with pytest.raises(RuntimeError, match='no unsupervised loss'):
        cps_step.main(['--config', CONFIG, '--rounds', '1', '--threads', '1', '--out', str(out)])


def test_data_pipeline_relates_loading_to_iterations(segmentation_data, tmp_path: Path) -> None:
    import data_pipeline
    log = tmp_path / 'run/1/vis_data/scalars.json'
    log.parent.mkdir(parents=True)
    lines = [dict(lr=1., data_time=9., time=9.5, step=10), dict(lr=1., data_time=0.1, time=0.4, step=20),
             dict(mIoU=5., data_time=3., time=3., step=20), dict(lr=1., data_time=0.3, time=0.6, step=30)]
    log.write_text('\n'.join(map(json.dumps, lines)))
    share = data_pipeline.waiting_share(tmp_path / 'run')
    assert share['loading_share'] == pytest.approx(0.4) and share['ms_per_iteration'] == pytest.approx(500)
    with pytest.raises(FileNotFoundError, match='--work-dir'):
        data_pipeline.waiting_share(tmp_path / 'none')

    out = tmp_path / 'data_pipeline.json'
    data_pipeline.main([str(segmentation_data.root), '--images', '4', '--rounds', '1', '--workers', '0', '--batches',
                        '1', '--seed', '5', '--work-dir', str(tmp_path / 'run'), '--out', str(out)])
    text = out.read_text()
    record = json.loads(text)
    assert record['seed'] == 5 and str(tmp_path) not in text
    assert record['argv'][:3] == ['benchmarks/data_pipeline.py', '.../data', '--images']
    assert any(row['baseline'] == 'a whole iteration' and row['value'] == pytest.approx(200) for row in record['rows'])
    assert record['details']['views'] == 2


def test_cls_pipeline_compares_with_torchvision(tmp_path: Path) -> None:
    pytest.importorskip('mmpretrain')
    import cls_pipeline
    out = tmp_path / 'cls_pipeline.json'
    result = cls_pipeline.main(['--images', '6', '--rounds', '1', '--out', str(out)])
    assert result['side'] == 32 and set(result['us_per_image']) == {'ours', 'pil_both', 'pil_strong'}
    rows = json.loads(out.read_text())['rows']
    assert [row['value'] for row in rows] == [pytest.approx(1e6 / result['us_per_image']['ours'])] * 2
    assert rows[0]['baseline_value'] < rows[1]['baseline_value']


def test_cls_step_compares_whole_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('mmpretrain')
    import cls_step
    folder, out, logged, passes = PROJECT / 'configs/layermatch/mnist', tmp_path / 'cls_step.json', {}, []

    def measured(step: Callable[[], dict | None], device: str) -> tuple[float, float]:
        losses = step()
        if losses is None:
            passes.append(step)
            return 2., 2.
        logged.setdefault(step, []).append(losses)
        return (4., 4.) if 'unsup_avg_loss' in losses else (3., 3.)

    monkeypatch.setattr(cls_step, 'measure', measured)
    arguments = ['--layermatch', str(folder / 'layermatch_wrn10-2_cpu-1k_mnist-10.py'), '--rounds', '2', '--batch',
                 '16', '--size', '8', '--threads', '1', '--out', str(out), '--fixmatch']  # fmt: skip
    result = cls_step.main([*arguments, str(folder / 'fixmatch_wrn10-2_cpu-1k_mnist-10.py')])
    # Whole steps: the supervised loss is the same in all three kinds at first, and falls.
    assert len(logged) == 3 and len(passes) == 3 and all(len(rounds) == 3 for rounds in logged.values())
    hooks = [rounds for rounds in logged.values() if 'unsup_avg_loss' in rounds[0]]
    assert len(hooks) == 1 and all('unsup_loss' in losses for rounds in logged.values() for losses in rounds)
    supervised = [[losses['sup_student.loss'].item() for losses in rounds] for rounds in logged.values()]
    assert len({rounds[0] for rounds in supervised}) == 1 and all(rounds[0] > rounds[-1] for rounds in supervised)
    assert result['ratio'] == {'layermatch / no hooks': 4 / 3, 'layermatch / fixmatch': 4 / 3, 'fixmatch / passes': 1.5}
    rows = json.loads(out.read_text())['rows']
    assert [(row['value'], row['baseline_value']) for row in rows] == [(4., 3.), (4., 3.), (3., 2.)]
    assert '\t@$(PY) benchmarks/cls_step.py\n' in (PROJECT / 'Makefile').read_text()

    with pytest.raises(ValueError, match='--batch must be a multiple of 8'):
        cls_step.main([*arguments, str(folder / 'fixmatch_wrn10-2_cpu-1k_mnist-10.py'), '--batch', '12'])
    with pytest.raises(ValueError, match=r'--fixmatch: .* has a teacher'):
        cls_step.main([*arguments, str(folder.parent / 'cifar10/mean-teacher_wrn28-2_1xb128-1m_cifar10-40.py')])
    with pytest.raises(ValueError, match=r'--layermatch: .* has none of mmssl\.GradReLUHook'):
        cls_step.main(['--layermatch', str(folder / 'fixmatch_wrn10-2_cpu-1k_mnist-10.py')])


def test_pll_step_compares_whole_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('mmpretrain')
    monkeypatch.syspath_prepend(str(PROJECT / 'benchmarks'))
    import cls_step
    import pll_step
    from mmengine.config import Config
    folder, out, calls = PROJECT / 'configs/rgd_pll/mnist', tmp_path / 'pll_step.json', []
    files = {name: folder / f'{name}_wrn10-2_cpu-500_mnist-uniform0.3.py' for name in ('rgd-pll', 'proden')}

    def measured(step: Callable[[], None], device: str) -> tuple[float, float]:
        step()
        calls.append(step)
        return 5.0 + 5.0 * (len(calls) % 2), 1.0

    monkeypatch.setattr(cls_step, 'measure', measured)
    result = pll_step.main(['--rgd-pll', str(files['rgd-pll']), '--proden', str(files['proden']), '--rounds', '1',
                            '--batch', '4', '--size', '16', '--threads', '1', '--out', str(out)])
    assert len(calls) == 2 * 5 * 8 and set(result['ms']) == {'exact', 'feature', 'lazy', 'proden', 'proden alone'}
    rows = json.loads(out.read_text())['rows']
    assert [row['baseline_value'] for row in rows] == [result['ms']['proden']] * 4
    cfg = pll_step.rgd_pll(files['rgd-pll'], mode='feature')
    assert cfg.optim_wrapper.mode == 'feature' and cfg.optim_wrapper.warmup == cfg.optim_wrapper.ramp == 0
    assert cfg.model.semi_train_cfg.unsup_begin == cfg.model.semi_train_cfg.unsup_ramp == 0
    assert Config.fromfile(files['rgd-pll']).optim_wrapper.warmup > 0
    assert '\t@$(PY) benchmarks/pll_step.py\n' in (PROJECT / 'Makefile').read_text()


def test_cls_step_has_the_forwards_of_the_config() -> None:
    """One for all views, or one each; of the weak view alone without a gradient, if it has no loss."""
    pytest.importorskip('mmpretrain')
    import cls_step
    from mmengine.config import Config
    from mmengine.registry import init_default_scope
    init_default_scope('mmpretrain')
    args = Namespace(seed=0, batch=16, size=8, device='cpu')
    cfg = Config.fromfile(PROJECT / 'configs/layermatch/mnist/fixmatch_wrn10-2_cpu-1k_mnist-10.py')
    forwards = {}
    for name, options in dict(together={}, apart=dict(concatenate=False),
                              own=dict(concatenate=False, student_branch='unsup_weak')).items():
        one = cfg.copy()
        one.model.semi_train_cfg.update(options)
        built, seen = cls_step.build(one, args), []
        built.model.student.backbone.register_forward_hook(
            lambda module, inputs, outputs, seen=seen: seen.append((len(inputs[0]), torch.is_grad_enabled())))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cls_step, 'build', lambda *_, built=built: built)
            cls_step.bare_passes(one, args)()
        forwards[name] = seen
    assert forwards == dict(together=[(30, True)], apart=[(2, True), (14, False), (14, True)],
                            own=[(2, True), (14, True)])


def test_fpl_loss_writes_time_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fpl_loss
    monkeypatch.setitem(fpl_loss.SHAPES, 'voc', (1, 5, 16, 16))
    monkeypatch.setattr(fpl_loss, 'measure_memory_apart', lambda method, *_: 1. + len(method))
    out = tmp_path / 'fpl_loss.json'
    fpl_loss.main(['--shapes', 'voc', '--teachers', 'random', '--repeats', '1', '--threads', '1', '--out', str(out)])
    record = json.loads(out.read_text())
    assert {(row['unit'], row['baseline']) for row in record['rows']} == {
        ('ms', 'cross_entropy_argmax'), ('ms', 'plain'), ('MiB', 'cross_entropy')}
    assert record['argv'][:5] == ['benchmarks/fpl_loss.py', '--shapes', 'voc', '--teachers', 'random']
    assert {result['method'] for result in record['details']['results']} == set(fpl_loss.METHODS)


def test_make_bench_measures_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make bench` gives the script no arguments, and without any it measures both shapes under both teachers."""
    import fpl_loss
    assert '\t@$(PY) benchmarks/fpl_loss.py\n' in (PROJECT / 'Makefile').read_text()
    shapes = {name: (1, 5, 16 + number, 16) for number, name in enumerate(fpl_loss.SHAPES)}
    for name, shape in shapes.items():
        monkeypatch.setitem(fpl_loss.SHAPES, name, shape)
    monkeypatch.setattr(fpl_loss, 'measure_memory_apart', lambda *_: 1.)
    monkeypatch.setattr(bench_results, 'FOLDER', tmp_path)
    monkeypatch.setattr('sys.argv', ['benchmarks/fpl_loss.py'])
    fpl_loss.main()
    record, = bench_results.read(tmp_path)
    assert record['argv'] == ['benchmarks/fpl_loss.py']
    assert '`python benchmarks/fpl_loss.py`' in bench_table.section(record)
    measured = {(tuple(result['shape']), result['teacher']) for result in record['details']['results']}
    assert measured == {(shape, teacher) for shape in shapes.values() for teacher in fpl_loss.TEACHERS}
    assert {row['what'].split(', ', 1)[1] for row in record['rows']} == {
        f'{"x".join(map(str, shape))}, {teacher} teacher' for shape, teacher in measured}


def test_a_command_that_was_not_recorded_is_not_made_up(tmp_path: Path) -> None:
    save(tmp_path)
    record, = bench_results.read(tmp_path)
    assert '- Command: not recorded' in bench_table.section({**record, 'argv': None})


def test_adr_loss_writes_time_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import adr_loss
    monkeypatch.setitem(adr_loss.SHAPES, 'voc', (1, 5, 16, 16))
    monkeypatch.setattr(adr_loss, 'measure_memory_apart', lambda method, *_: 20. + len(method))
    out = tmp_path / 'adr_loss.json'
    adr_loss.main(['--shapes', 'voc', '--repeats', '1', '--threads', '1', '--out', str(out)])
    record = json.loads(out.read_text())
    assert {(row['unit'], row['baseline']) for row in record['rows']} == {
        ('ms', 'cross_entropy'), ('ms', 'plain'), ('MiB', 'cross_entropy')}
    assert {result['method'] for result in record['details']['results']} == set(adr_loss.METHODS)
    assert '\t@$(PY) benchmarks/adr_loss.py\n' in (PROJECT / 'Makefile').read_text()
