"""The proof harness: what it runs, skips and continues, and that tables and plots follow from its files alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proof import main
from proof_harness import collect, report
from proof_harness.grid import load_grid

PROJECT = Path(__file__).resolve().parents[2]


def results(repo: Path) -> dict[str, dict[str, Any]]:
    folder = repo / 'benchmarks/results/toy'
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob('*-seed*.json'))}


def run(repo: Path, *args: str) -> int:
    return main(['toy', '--poll', '0.02', *args], repo=repo)


def test_runs_every_row_with_every_seed_and_records_it(repo: Path) -> None:
    assert run(repo) == 0
    runs = results(repo)
    assert list(runs) == ['better-seed0', 'better-seed2', 'plain-seed0', 'plain-seed2']
    record = runs['better-seed2']
    assert [entry['iter'] for entry in record['validations']] == [5, 10, 15, 20]
    assert record['validations'][-1]['mIoU'] == 20 + 2 + 10 and record['validations'][-1]['aAcc'] == 90
    assert record['summary'] == dict(last=32.0, best=32.0, best_iter=20, median_last3=27.0)
    assert record['curves']['unsup_mean_k'][-1] == [20, 2.0]
    assert record['ms_per_iter'] == pytest.approx(110)  # median of 20, 40 ... 200 ms
    assert record['minutes'] > 0 and record['peak_rss_mb'] > 1
    assert record['seed'] == 2 and record['row'] == 'better' and len(record['config_hash']) == 64
    assert {'python', 'torch', 'numpy', 'mmengine', 'mmcv', 'mmseg'} <= set(record['versions'])
    assert record['hardware']['cpu'] and record['hardware']['cores'] == os.cpu_count()
    assert {'commit', 'dirty', 'date'} <= set(record)
    assert str(repo) not in json.dumps(record)


def test_skips_what_is_done_and_reruns_what_is_stale(repo: Path, capsys: pytest.CaptureFixture) -> None:
    run(repo, '--only', 'plain')
    before = {path: path.stat().st_mtime_ns for path in (repo / 'benchmarks/results/toy').glob('*.json')}
    assert len(before) == 2
    assert run(repo, '--only', 'plain') == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    (repo / 'configs/toy.py').write_text((repo / 'configs/toy.py').read_text().replace('width=4', 'width=8'))
    capsys.readouterr()
    assert run(repo, '--only', 'plain', '--dry-run') == 0
    assert 'stale' in capsys.readouterr().out
    old_hash = results(repo)['plain-seed0']['config_hash']
    assert run(repo, '--only', 'plain') == 0
    assert results(repo)['plain-seed0']['config_hash'] != old_hash


def test_a_failed_run_leaves_no_result_and_is_continued_from_its_checkpoint(
        repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv('FAKE_DIE', 'plain-seed0/13')
    assert run(repo, '--only', 'plain') == 1
    out = capsys.readouterr().out
    assert 'boom: the fake run dies here' in out and 'plain-seed0' in out
    assert list(results(repo)) == ['plain-seed2']  # the failure did not stop the rest of the grid
    monkeypatch.delenv('FAKE_DIE')
    run(repo, '--only', 'plain', '--dry-run')
    assert '--resume' in capsys.readouterr().out
    assert run(repo, '--only', 'plain') == 0
    record = results(repo)['plain-seed0']
    assert len(record['sessions']) == 2
    assert [entry['iter'] for entry in record['validations']] == [5, 10, 15, 20]
    assert [point[0] for point in record['curves']['loss']] == list(range(2, 21, 2))
    assert record['minutes'] == pytest.approx(sum(s['seconds'] for s in record['sessions']) / 60, abs=0.01)


def git(repo: Path, *args: str) -> str:
    command = ['git', '-C', str(repo), '-c', 'user.name=n', '-c', 'user.email=e@example.org', *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_uncommitted_changes_are_refused_unless_allowed(repo: Path, capsys: pytest.CaptureFixture) -> None:
    git(repo, 'init', '-q')
    git(repo, 'add', '.')
    git(repo, 'commit', '-q', '-m', 'all')
    config = repo / 'configs/toy.py'
    for change in (lambda: config.write_text(config.read_text() + '# changed\n'),
                   lambda: (repo / 'configs/new.py').write_text('')):
        change()
        capsys.readouterr()
        assert run(repo, '--only', 'plain', '--seeds', '0') == 2
        assert 'uncommitted changes in configs/' in capsys.readouterr().err
        assert results(repo) == {} and not (repo / 'work_dirs').exists()
        assert run(repo, '--only', 'plain', '--seeds', '0', '--dry-run') == 0
        git(repo, 'add', '.')
        git(repo, 'commit', '-q', '-m', 'more')
    assert run(repo, '--only', 'plain', '--seeds', '0') == 0
    assert results(repo)['plain-seed0']['dirty'] is False
    (repo / 'tools/new.py').write_text('')
    assert run(repo, '--only', 'plain', '--seeds', '2', '--allow-dirty') == 0
    assert results(repo)['plain-seed2']['dirty'] is True
    assert 'with local changes' in report.table(load_grid('toy', repo))


def test_a_run_continued_at_another_commit_says_so(
        repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    commits = []
    (repo / '.gitignore').write_text('work_dirs\nbenchmarks/results\n')
    git(repo, 'init', '-q')
    for die in ('plain-seed0/13', ''):
        (repo / 'note.txt').write_text(die)
        git(repo, 'add', '.')
        git(repo, 'commit', '-q', '-m', 'next')
        commits.append(git(repo, 'rev-parse', 'HEAD')[:10])
        monkeypatch.setenv('FAKE_DIE', die)
        assert run(repo, '--only', 'plain', '--seeds', '0') == bool(die)
    assert f'was begun at commit {commits[0]} and goes on at {commits[1]}' in capsys.readouterr().out
    table = report.table(load_grid('toy', repo))
    assert f'plain-seed0 ({commits[0]} → {commits[1]})' in table
    assert f'commit: {commits[0]}, {commits[1]}' in table


def test_a_checkpoint_that_was_never_finished_is_put_aside(repo: Path) -> None:
    run(repo, '--only', 'plain', '--seeds', '0')
    work_dir = next((repo / 'work_dirs/proof/toy/plain-seed0').iterdir())
    (work_dir / 'last_checkpoint').unlink()
    (repo / 'benchmarks/results/toy/plain-seed0.json').unlink()
    assert run(repo, '--only', 'plain', '--seeds', '0') == 0
    assert (work_dir / 'iter_20.pth.orphan').is_file() and (work_dir / 'iter_20.pth').is_file()


def test_an_interrupted_run_is_not_continued_under_another_config(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('FAKE_DIE', 'plain-seed0/13')
    assert run(repo, '--only', 'plain', '--seeds', '0') == 1
    monkeypatch.delenv('FAKE_DIE')
    (repo / 'configs/toy.py').write_text((repo / 'configs/toy.py').read_text().replace('width=4', 'width=8'))
    assert run(repo, '--only', 'plain', '--seeds', '0') == 0
    assert len(results(repo)['plain-seed0']['sessions']) == 1


def test_stopping_the_harness_stops_the_training_and_the_next_call_continues(repo: Path) -> None:
    command = [sys.executable, str(PROJECT / 'benchmarks/proof.py'), 'toy', '--repo', str(repo), '--poll', '0.02',
               '--only', 'plain', '--seeds', '0']
    process = subprocess.Popen(command, env=dict(os.environ, FAKE_SLEEP='0.3'), stdout=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while not list((repo / 'work_dirs').rglob('iter_5.pth')) and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
    lines = [path.read_text() for path in (repo / 'work_dirs').rglob('scalars.json')]
    time.sleep(0.7)
    assert [path.read_text() for path in (repo / 'work_dirs').rglob('scalars.json')] == lines  # nobody writes any more
    assert results(repo) == {}
    assert run(repo, '--only', 'plain', '--seeds', '0') == 0
    assert len(results(repo)['plain-seed0']['sessions']) == 2


def test_jobs_share_the_cores_and_get_the_data_root(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp('data')
    assert run(repo, '--jobs', '2', '--only', 'plain', '--data-root', str(data)) == 0
    logs = [path.read_text() for path in (repo / 'work_dirs').rglob('train.log')]
    threads = max(1, os.cpu_count() // 2)
    assert len(logs) == 2 and all(f'threads {threads} root {data}' in log for log in logs)
    record = results(repo)['plain-seed0']
    assert record['hardware']['threads'] == threads and record['hardware']['jobs'] == 2
    assert str(data) not in json.dumps(record)


def test_the_hash_ignores_machine_paths_and_sees_split_lists(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def current() -> str:
        return load_grid('toy', repo).rows[0].fingerprint().digest

    first = current()
    monkeypatch.setenv('FAKE_ROOT', '/elsewhere/camvid')
    assert current() == first
    (repo / 'configs/toy.py').write_text((repo / 'configs/toy.py').read_text().replace('/somewhere', '/other'))
    assert current() == first
    (repo / 'configs/labeled.txt').write_text('a\nc\n')
    assert current() != first


def test_further_keys_get_the_seed(repo: Path, capsys: pytest.CaptureFixture) -> None:
    path = repo / 'benchmarks/grids/toy.py'
    path.write_text(path.read_text() + "seed_keys = ['model.labels_seed']\n")
    assert run(repo, '--dry-run', '--only', 'plain', '--seeds', '2', '--allow-dirty') == 0
    assert 'randomness.seed=2 model.labels_seed=2' in capsys.readouterr().out
    path.write_text(path.read_text().replace("{'model.offset': 10}", "{'model.labels_seed': 10}"))
    with pytest.raises(ValueError, match=r'cfg_options sets model\.labels_seed'):
        load_grid('toy', repo)


@pytest.mark.parametrize('change, message', [
    (('seeds = [0, 2]', 'seeds = []'), 'seeds'),
    (("metric = 'mIoU'", "metrics = 'mIoU'"), 'metrics'),
    (("config='configs/toy.py', cfg", "config='configs/none.py', cfg"), 'configs/none.py'),
    (("name='better'", "name='plain'"), "rows: name 'plain'"),
    (("name='better'", "name='a b'"), "'a b'"),
    (("{'model.offset': 10}", "{'randomness.seed': 10}"), 'randomness.seed'),
])
def test_bad_grids_are_refused(repo: Path, change: tuple[str, str], message: str) -> None:
    path = repo / 'benchmarks/grids/toy.py'
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_grid('toy', repo)


@pytest.mark.parametrize('args, message', [
    (['nope'], "'nope'.*toy"),
    (['toy', '--only', 'nope'], "--only: 'nope'.*plain, better"),
    (['toy', '--seeds', '7'], r'--seeds: 7.*0, 2'),
    (['toy', '--jobs', '0'], '--jobs: 0'),
    (['toy', '--data-root', '/no/such/folder'], '--data-root: /no/such/folder'),
])
def test_bad_arguments_are_refused(repo: Path, args: list[str], message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        main(args, repo=repo)


def test_a_run_without_the_metric_fails(repo: Path, capsys: pytest.CaptureFixture) -> None:
    path = repo / 'benchmarks/grids/toy.py'
    path.write_text(path.read_text().replace("'mIoU'", "'accuracy/top1'"))
    assert run(repo, '--only', 'plain', '--seeds', '0') == 1
    assert 'accuracy/top1' in capsys.readouterr().out
    assert results(repo) == {}


def test_table_says_what_the_files_say(repo: Path, capsys: pytest.CaptureFixture) -> None:
    run(repo)
    capsys.readouterr()
    assert main(['table', 'toy'], repo=repo) == 0
    table = capsys.readouterr().out
    # seeds 0 and 2 give 20 and 22: mean 21, sample standard deviation sqrt(2)
    assert '| [Plain](toy.py) | 21.00 ± 1.41 | 21.00 ± 1.41 | 16.00 ± 1.41 |' in table
    assert '| [Better](toy.py) | 31.00 ± 1.41 |' in table
    assert 'python benchmarks/proof.py toy' in table and 'commit' in table and str(os.cpu_count()) in table


def test_further_metrics_are_shown_with_the_digits_that_they_need(
        repo: Path, capsys: pytest.CaptureFixture) -> None:
    path = repo / 'benchmarks/grids/toy.py'
    path.write_text(path.read_text() + "extra_metrics = ['aAcc', 'ECE']\n")
    run(repo, '--only', 'plain')
    capsys.readouterr()
    main(['table', 'toy'], repo=repo)
    table = capsys.readouterr().out
    assert '| median of last 3 | aAcc last | ECE last |' in table
    assert '| 16.00 ± 1.41 | 90.00 ± 0.00 | 0.1010 ± 0.0014 |' in table


def test_a_criterion_chooses_the_validation_that_is_tabled(repo: Path, capsys: pytest.CaptureFixture) -> None:
    path = repo / 'benchmarks/grids/toy.py'
    path.write_text(path.read_text() + "criterion = 'aAcc'\n")
    run(repo, '--only', 'plain')
    for number, name in enumerate(('plain-seed0', 'plain-seed2')):
        file = repo / f'benchmarks/results/toy/{name}.json'
        record = json.loads(file.read_text())
        record['validations'][1 + number]['aAcc'] = 95.0
        file.write_text(json.dumps(record))
    capsys.readouterr()
    main(['table', 'toy'], repo=repo)
    table = capsys.readouterr().out
    assert '| median of last 3 | mIoU chosen by aAcc | minutes |' in table
    # Seed 0 at iteration 10 has 10, seed 2 at iteration 15 has 17.
    assert '| 16.00 ± 1.41 | 13.50 ± 4.95 |' in table


def test_path_variables_are_no_part_of_the_hash(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid, config = repo / 'benchmarks/grids/toy.py', repo / 'configs/toy.py'
    config.write_text(config.read_text() + "sets = '{{$FAKE_SETS:data/sets}}/a.txt'\n")
    grid.write_text(grid.read_text() + "path_variables = ['FAKE_SETS']\n")
    first = load_grid('toy', repo).rows[0].fingerprint()
    assert first.content['sets'] == '<FAKE_SETS>/a.txt'
    monkeypatch.setenv('FAKE_SETS', '/elsewhere')
    assert load_grid('toy', repo).rows[0].fingerprint() == first
    assert os.environ['FAKE_SETS'] == '/elsewhere'


def test_table_is_written_between_its_markers_only_and_check_compares(repo: Path) -> None:
    run(repo)
    grid = load_grid('toy', repo)
    assert any('README.md' in problem for problem in report.check(grid))
    assert main(['check'], repo=repo) == 1
    assert main(['table', 'toy', '--write'], repo=repo) == 0
    text = (repo / 'configs/README.md').read_text()
    assert text.startswith('before\n') and text.endswith('\nafter\n') and '21.00 ± 1.41' in text and 'old' not in text
    assert report.check(grid) == [] and main(['check'], repo=repo) == 0
    (repo / 'configs/README.md').write_text(text.replace('21.00', '99.00'))
    assert any('README.md' in problem for problem in report.check(grid))


def test_check_sees_a_config_that_changed_and_names_the_key(repo: Path) -> None:
    run(repo)
    main(['table', 'toy', '--write'], repo=repo)
    (repo / 'configs/toy.py').write_text((repo / 'configs/toy.py').read_text().replace('width=4', 'width=8'))
    problems = report.check(load_grid('toy', repo))
    assert len(problems) == 4 and all('model.width: 4 -> 8' in problem for problem in problems)


def test_check_sees_a_touched_number_and_a_result_of_no_row(repo: Path) -> None:
    run(repo)
    main(['table', 'toy', '--write'], repo=repo)
    folder = repo / 'benchmarks/results/toy'
    record = json.loads((folder / 'plain-seed0.json').read_text())
    record['validations'][-1]['mIoU'] += 1
    (folder / 'plain-seed0.json').write_text(json.dumps(record))
    problems = report.check(load_grid('toy', repo))
    assert any('README.md' in problem for problem in problems) and any('summary' in problem for problem in problems)
    (folder / 'plain-seed0.json').rename(folder / 'gone-seed0.json')
    assert any('gone-seed0.json' in problem for problem in report.check(load_grid('toy', repo)))


def test_incomplete_and_missing_results_are_said_not_hidden(repo: Path, capsys: pytest.CaptureFixture) -> None:
    grid = load_grid('toy', repo)
    assert report.check(grid) == []  # nothing has run yet, and the README does not claim otherwise
    run(repo, '--only', 'plain', '--seeds', '0')
    capsys.readouterr()
    main(['table', 'toy'], repo=repo)
    table = capsys.readouterr().out
    assert '| [Plain](toy.py) | 20.00 (1 seed) |' in table and '1 of 2' in table and '0 of 2' in table


def test_write_refuses_a_readme_without_markers(repo: Path) -> None:
    run(repo, '--only', 'plain', '--seeds', '0')
    (repo / 'configs/README.md').write_text('no markers')
    with pytest.raises(ValueError, match='<!-- proof:toy begin -->'):
        main(['table', 'toy', '--write'], repo=repo)


def test_plot_draws_metric_and_curves(repo: Path) -> None:
    run(repo)
    assert main(['plot', 'toy'], repo=repo) == 0
    assert (repo / 'configs/toy.png').stat().st_size > 5000
    panels = report.series(load_grid('toy', repo))
    assert list(panels) == ['mIoU', 'unsup_mean_k']
    iterations, mean, std = panels['mIoU']['plain']
    np.testing.assert_allclose(iterations, [5, 10, 15, 20])
    np.testing.assert_allclose(mean, [6, 11, 16, 21])
    np.testing.assert_allclose(std, np.full(4, np.sqrt(2)))


def test_plot_without_results_is_refused(repo: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r'python benchmarks/proof\.py toy'):
        main(['plot', 'toy'], repo=repo)


def test_thinning_keeps_at_most_100_points_and_the_mean() -> None:
    points = [(i, float(i)) for i in range(1, 1001)]
    thin = collect.thin(points, 100)
    assert len(thin) == 100 and thin[-1][0] == 1000
    assert np.mean([value for _, value in thin]) == pytest.approx(500.5)
    assert collect.thin(points[:7], 100) == [list(point) for point in points[:7]]


def test_metrics_logged_by_epoch_get_their_iteration(tmp_path: Path) -> None:
    vis = tmp_path / '1' / 'vis_data'
    vis.mkdir(parents=True)
    lines = [dict(loss=1., lr=1., epoch=1, iter=10, step=10, time=1.), {'accuracy/top1': 50., 'step': 1},
             dict(loss=1., lr=1., epoch=2, iter=20, step=20, time=1.), {'accuracy/top1': 60., 'step': 2}]
    (vis / 'scalars.json').write_text('\n'.join(map(json.dumps, lines)) + '\n{"accuracy/top1": 7')  # cut by a kill
    log = collect.read_scalars(tmp_path, 'accuracy/top1')
    assert log.validations == [{'iter': 10, 'accuracy/top1': 50.}, {'iter': 20, 'accuracy/top1': 60.}]


def test_lower_can_be_better() -> None:
    validations = [dict(iter=1, ece=3.), dict(iter=2, ece=1.), dict(iter=3, ece=2.), dict(iter=4, ece=2.)]
    summary = collect.summarize(validations, 'ece', better='lower')
    assert summary == dict(last=2., best=1., best_iter=2, median_last3=2.)


def test_a_grid_takes_from_its_base_what_it_does_not_say(repo: Path) -> None:
    grids = repo / 'benchmarks/grids'
    (grids / 'other.py').write_text("base = 'toy'\ntitle = 'Another'\nseeds = [7]\nconfig = 'configs/{name}.py'\n"
                                    "rows = [dict(name='toy'), dict(name='own', config='configs/toy.py')]\n")
    grid, base = load_grid('other', repo), load_grid('toy', repo)
    assert (grid.title, grid.seeds, grid.metric, grid.plots) == ('Another', [7], base.metric, base.plots)
    assert [row.config for row in grid.rows] == ['configs/toy.py', 'configs/toy.py']
    assert grid.results == repo / 'benchmarks/results/other'
    for name in ('nothing', 'third', 'other'):
        (grids / 'third.py').write_text(f"base = '{name}'\n")
        with pytest.raises(ValueError, match='base must be the name of a grid that has no base itself'):
            load_grid('third', repo)
