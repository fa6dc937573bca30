"""tools/datasets/make_splits.py: counts, nesting, the same file everywhere, balance, never overwriting."""

import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from mmssl.utils.split_list import read_split_list


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location('make_splits', repo_root / 'tools/datasets/make_splits.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith('#')]


def write_list(path: Path, count: int) -> Path:
    path.write_text(''.join(f'2007_{i:06d}\n' for i in range(count)))
    return path


def test_golden_file(tool: ModuleType, tmp_path: Path) -> None:
    source = write_list(tmp_path / 'train.txt', 10)
    assert (
        tool.main(['--source', str(source), '--out', str(tmp_path / 'out'), '--fractions', '1/4', '--seed', '3']) == 0
    )
    # Made by independent code: changing these bytes changes everybody's splits.
    golden = Path(__file__).with_name('golden_splits.txt').read_bytes()
    assert (tmp_path / 'out/labeled_1-4.txt').read_bytes() == golden


def test_header_states_what_is_needed_to_repeat(tool: ModuleType, tmp_path: Path) -> None:
    source = write_list(tmp_path / 'train.txt', 10)
    tool.main(['--source', str(source), '--out', str(tmp_path), '--counts', '3', '--seed', '7'])
    header = [line for line in (tmp_path / 'unlabeled_3.txt').read_text().splitlines() if line.startswith('#')]
    assert hashlib.sha256(source.read_bytes()).hexdigest() in header[-1]
    assert 'make_splits' in header[0] and 'seed: 7' in header[2] and 'count: 7 of 10' in header[1]


@pytest.mark.parametrize(
    ('total', 'expected'),
    [
        (10582, {'1/16': 662, '1/8': 1323, '1/4': 2646, '1/2': 5291}),
        (1464, {'1/16': 92, '1/8': 183, '1/4': 366, '1/2': 732}),
        (2975, {'1/16': 186, '1/8': 372, '1/4': 744, '1/2': 1488, '1/30': 100}),
        (367, {'1/8': 46}),
    ],
)
def test_published_counts_names_and_nesting(
    tool: ModuleType, tmp_path: Path, total: int, expected: dict[str, int]
) -> None:
    source = write_list(tmp_path / 'train_aug.txt', total)
    out = tmp_path / 'subset_train_aug'
    assert (
        tool.main(['--source', str(source), '--out', str(out), '--naming', 'train_aug', '--fractions', *expected]) == 0
    )
    everything = set(entries(source))
    previous: set[str] = set()
    for fraction, count in sorted(expected.items(), key=lambda item: item[1]):
        name = fraction.replace('/', '-')
        labeled = entries(out / f'train_aug_labeled_{name}.txt')
        unlabeled = entries(out / f'train_aug_unlabeled_{name}.txt')
        assert len(labeled) == count == len(set(labeled)) and len(labeled) + len(unlabeled) == total
        assert set(labeled) | set(unlabeled) == everything
        assert previous < set(labeled)
        previous = set(labeled)


def test_order_of_the_source_and_line_ends_do_not_matter(tool: ModuleType, tmp_path: Path) -> None:
    first = write_list(tmp_path / 'list.txt', 50)
    (tmp_path / 'b').mkdir()
    second = tmp_path / 'b/list.txt'
    second.write_bytes(b'# a comment\r\n' + b'\r\n'.join(reversed(first.read_bytes().split())) + b'\r\n')
    tool.main(['--source', str(first), '--out', str(tmp_path / '1'), '--fractions', '1/8'])
    tool.main(['--source', str(second), '--out', str(tmp_path / '2'), '--fractions', '1/8'])
    for name in ('labeled_1-8.txt', 'unlabeled_1-8.txt'):
        assert (tmp_path / '1' / name).read_bytes() == (tmp_path / '2' / name).read_bytes()


def test_seed_changes_the_split(tool: ModuleType, tmp_path: Path) -> None:
    source = write_list(tmp_path / 'list.txt', 64)
    for seed in ('0', '1'):
        tool.main(['--source', str(source), '--out', str(tmp_path / seed), '--counts', '16', '--seed', seed])
    shared = set(entries(tmp_path / '0/labeled_16.txt')) & set(entries(tmp_path / '1/labeled_16.txt'))
    assert len(shared) < 16


@pytest.mark.parametrize('separator', ['\t', ' '])
def test_two_columns_keep_their_format(tool: ModuleType, tmp_path: Path, separator: str) -> None:
    lines = [f'img/a{i}.png{separator}ann/a{i}.png' for i in range(8)]
    source = tmp_path / 'list.txt'
    source.write_text('\n'.join(lines))
    tool.main(['--source', str(source), '--out', str(tmp_path), '--fractions', '1/2'])
    assert sorted(entries(tmp_path / 'labeled_1-2.txt') + entries(tmp_path / 'unlabeled_1-2.txt')) == sorted(lines)
    # The same images are chosen whatever the second column says.
    ids = tmp_path / 'ids.txt'
    ids.write_text('\n'.join(f'img/a{i}.png' for i in range(8)))
    tool.main(['--source', str(ids), '--out', str(tmp_path / 'ids'), '--fractions', '1/2'])
    assert [line.split(separator)[0] for line in entries(tmp_path / 'labeled_1-2.txt')] == entries(
        tmp_path / 'ids/labeled_1-2.txt'
    )


def test_folder_source(tool: ModuleType, tmp_path: Path) -> None:
    for name in ('city/b.jpg', 'city/a.jpg', 'c.JPG', 'notes.txt'):
        (tmp_path / 'img' / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'img' / name).touch()
    assert tool.main(['--source', str(tmp_path / 'img'), '--out', str(tmp_path), '--counts', '1']) == 0
    assert sorted(entries(tmp_path / 'labeled_1.txt') + entries(tmp_path / 'unlabeled_1.txt')) == [
        'c',
        'city/a',
        'city/b',
    ]


def test_unlabeled_source_is_less_the_labeled_ones(tool: ModuleType, tmp_path: Path) -> None:
    small, large = write_list(tmp_path / 'train.txt', 20), write_list(tmp_path / 'train_aug.txt', 100)
    tool.main(['--source', str(small), '--unlabeled-source', str(large), '--out', str(tmp_path), '--counts', '5'])
    labeled, unlabeled = entries(tmp_path / 'labeled_5.txt'), entries(tmp_path / 'unlabeled_5.txt')
    assert len(unlabeled) == 95 and not set(labeled) & set(unlabeled) and set(labeled) <= set(entries(small))


def write_labels(folder: Path, classes: list[list[int]]) -> list[str]:
    folder.mkdir(parents=True)
    names = []
    for index, values in enumerate(classes):
        mask = np.full((4, 8), 255, np.uint8)
        mask[0, : len(values)] = values
        Image.fromarray(mask).save(folder / f's{index:03d}.png')
        names.append(f's{index:03d}')
    return names


def test_balanced_covers_every_class_and_is_nested(tool: ModuleType, tmp_path: Path) -> None:
    # Class 0 is everywhere, class 1 in a quarter, class 2 in two of 64 images, class 3 in one.
    classes = [[0] + [1] * (i % 4 == 0) + [2] * (i in (7, 50)) + [3] * (i == 33) for i in range(64)]
    names = write_labels(tmp_path / 'ann', classes)
    source = tmp_path / 'list.txt'
    source.write_text('\n'.join(names))
    arguments = [
        '--source',
        str(source),
        '--out',
        str(tmp_path),
        '--fractions',
        '1/16',
        '1/4',
        '1/2',
        '--balanced',
        '--ann-dir',
        str(tmp_path / 'ann'),
        '--num-classes',
        '4',
    ]
    assert tool.main(arguments) == 0
    shown = dict(zip(names, classes, strict=True))
    previous: set[str] = set()
    for name, count in (('1-16', 4), ('1-4', 16), ('1-2', 32)):
        labeled = entries(tmp_path / f'labeled_{name}.txt')
        assert len(labeled) == count and previous < set(labeled)
        assert {c for image in labeled for c in shown[image]} == {0, 1, 2, 3}
        previous = set(labeled)
    # It stratifies: the quarter of images with class 1 stays about a quarter.
    assert 7 <= sum(1 in shown[image] for image in previous) <= 10


def test_balanced_refuses_labels_out_of_range(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = write_labels(tmp_path / 'ann', [[0], [1], [9]])
    source = tmp_path / 'list.txt'
    source.write_text('\n'.join(names))
    assert (
        tool.main(
            [
                '--source',
                str(source),
                '--out',
                str(tmp_path),
                '--counts',
                '1',
                '--balanced',
                '--ann-dir',
                str(tmp_path / 'ann'),
                '--num-classes',
                '3',
            ]
        )
        == 2
    )
    message = capsys.readouterr().err
    assert 's002.png' in message and '[9]' in message and '0 to 2' in message


def test_identical_is_left_alone_and_different_needs_force(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_list(tmp_path / 'list.txt', 32)
    arguments = ['--source', str(source), '--out', str(tmp_path / 'out'), '--fractions', '1/8', '1/4']
    assert tool.main([*arguments, '--seed', '0']) == 0
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / 'out').iterdir()}
    assert tool.main([*arguments, '--seed', '0']) == 0
    assert 'unchanged' in capsys.readouterr().out
    # One file differs: none is written, even where another is absent.
    (tmp_path / 'out/labeled_1-4.txt').unlink()
    assert tool.main([*arguments, '--seed', '1']) == 2
    message = capsys.readouterr().err
    assert 'labeled_1-8.txt' in message and '--force' in message
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / 'out').iterdir()}
    del before[tmp_path / 'out/labeled_1-4.txt']
    assert after == before
    assert tool.main([*arguments, '--seed', '1', '--force']) == 0
    assert (tmp_path / 'out/labeled_1-8.txt').read_bytes() != before[tmp_path / 'out/labeled_1-8.txt'][0]
    assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == [
        'labeled_1-4.txt',
        'labeled_1-8.txt',
        'unlabeled_1-4.txt',
        'unlabeled_1-8.txt',
    ]


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['--source', 'nowhere', '--fractions', '1/8'], ['--source nowhere']),
        (['--source', 'list.txt', '--fractions', 'x'], ['--fractions', "'x'"]),
        (['--source', 'list.txt', '--fractions', '9/8'], ['--fractions', '9/8']),
        (['--source', 'list.txt', '--counts', '8'], ['8 labeled samples of 8', '1 to 7']),
        (['--source', 'list.txt', '--counts', '0'], ['1 to 7']),
        (['--source', 'twice.txt', '--counts', '1'], ['--source', 'twice.txt', "'a' twice, in lines 1 and 3"]),
        (['--source', 'empty.txt', '--counts', '1'], ['empty.txt']),
        (['--source', 'list.txt', '--counts', '1', '--balanced'], ['--ann-dir', '--num-classes']),
        (
            ['--source', 'list.txt', '--counts', '1', '--balanced', '--ann-dir', 'no', '--num-classes', '3'],
            ['--ann-dir no'],
        ),
    ],
)
def test_bad_input_is_one_line(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    expected: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_list(tmp_path / 'list.txt', 8)
    (tmp_path / 'twice.txt').write_text('a\nb\na\n')
    (tmp_path / 'empty.txt').write_text('# nothing\n')
    assert tool.main([*arguments, '--out', 'out']) == 2
    message = capsys.readouterr().err
    assert message.count('\n') == 1 and all(text in message for text in expected)
    assert not (tmp_path / 'out').exists()


def test_no_header_is_readable_by_stock_mmseg(tool: ModuleType, tmp_path: Path) -> None:
    source = write_list(tmp_path / 'list.txt', 8)
    tool.main(['--source', str(source), '--out', str(tmp_path), '--counts', '3', '--no-header'])
    assert '#' not in (tmp_path / 'labeled_3.txt').read_text()


@pytest.mark.dist
def test_runs_as_a_script_whatever_the_hash_seed(repo_root: Path, tmp_path: Path) -> None:
    source = write_list(tmp_path / 'list.txt', 40)
    for hash_seed in ('1', '2'):
        subprocess.run(
            [
                sys.executable,
                str(repo_root / 'tools/datasets/make_splits.py'),
                '--source',
                str(source),
                '--out',
                str(tmp_path / hash_seed),
                '--fractions',
                '1/8',
            ],
            check=True,
            cwd=tmp_path,
            env={'PYTHONHASHSEED': hash_seed, 'PATH': '', 'PYTHONPATH': str(repo_root)},
        )
    assert (tmp_path / '1/labeled_1-8.txt').read_bytes() == (tmp_path / '2/labeled_1-8.txt').read_bytes()


def test_every_format_of_lists_is_read_again(tool: ModuleType, tmp_path: Path) -> None:
    lines = ['a b', 'img/c d.jpg', 'img/e f.JPG ann/e f.png', 'img/g.png\tann/g h.png', '2007_000032']
    source = tmp_path / 'list.txt'
    source.write_text('\n'.join(lines))
    assert tool.main(['--source', str(source), '--out', str(tmp_path), '--counts', '2']) == 0
    read = [e for name in ('labeled_2', 'unlabeled_2') for e in read_split_list(tmp_path / f'{name}.txt')]
    assert {(e.image, e.label, e.text) for e in read} == {
        ('a b', None, lines[0]), ('img/c d.jpg', None, lines[1]), ('img/e f.JPG', 'ann/e f.png', lines[2]),
        ('img/g.png', 'ann/g h.png', lines[3]), ('2007_000032', None, lines[4])}  # fmt: skip


def test_whole_source_may_be_labeled_if_the_rest_comes_from_elsewhere(tool: ModuleType, tmp_path: Path) -> None:
    small, large = write_list(tmp_path / 'train.txt', 20), write_list(tmp_path / 'train_aug.txt', 100)
    arguments = ['--source', str(small), '--out', str(tmp_path), '--counts', '20', '--naming', 'train']
    assert tool.main(arguments) == 2
    assert tool.main([*arguments, '--unlabeled-source', str(large)]) == 0
    assert entries(tmp_path / 'train_labeled_20.txt') == entries(small)
    assert len(entries(tmp_path / 'train_unlabeled_20.txt')) == 80


def class_folders(root: Path) -> Path:
    """Classes a, b and c with 3, 4 and 5 images."""
    for count, name in zip((3, 4, 5), 'abc', strict=True):
        (root / name).mkdir(parents=True)
        for number in range(count):
            Image.new('RGB', (4, 4)).save(root / name / f'{number}.png')
    return root


def test_as_many_of_each_class(tool: ModuleType, tmp_path: Path) -> None:
    """Equal numbers though the classes are not equally large; the smaller list is in the larger one."""
    source = class_folders(tmp_path / 'train')
    command = ['--source', str(source), '--class-folders', '--out', str(tmp_path / 'out'), '--per-class', '1', '3']
    assert tool.main(command) == 0
    one, three = (entries(tmp_path / 'out' / f'labeled_{n}-per-class.txt') for n in (1, 3))
    assert [line[0] for line in one] == list('abc') and [line[0] for line in three] == list('aaabbbccc')
    assert set(one) < set(three)
    assert len(entries(tmp_path / 'out' / 'unlabeled_3-per-class.txt')) == 3
    header = (tmp_path / 'out' / 'labeled_1-per-class.txt').read_text().splitlines()[:4]
    assert 'the first of each of 3 classes' in header[2] and 'source: train, sha256' in header[3]
    # The order within a class is that of all splits.
    order = [s.image for s in tool.seeded_order(tool.read_source(str(source), ('.png', )), 0)]
    assert one == sorted(next(name for name in order if name.startswith(label)) for label in 'abc')


def test_classes_in_a_list(tool: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / 'train.txt'
    source.write_text(''.join(f'{i}.png {i % 2}\n' for i in range(8)))
    assert tool.main(['--source', str(source), '--out', str(tmp_path), '--per-class', '2']) == 0
    labels = [line.split()[1] for line in entries(tmp_path / 'labeled_2-per-class.txt')]
    assert sorted(labels) == ['0', '0', '1', '1']


def test_data_sets_without_files(tool: ModuleType, repo_root: Path, tmp_path: Path, shared_data: Path,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are indices, and each has its label beside it, so that another order of the data is noticed."""
    pytest.importorskip('mmpretrain')
    from mmengine.config import Config
    from mmengine.registry import DATASETS, DefaultScope
    monkeypatch.setenv('MNIST_ROOT', str(shared_data / 'mnist'))
    config = repo_root / 'configs/_base_/datasets/mnist.py'
    assert tool.main(['--config', str(config), '--out', str(tmp_path), '--per-class', '4']) == 0
    node = Config.fromfile(config).train_dataloader.dataset.sources.labeled
    node.pop('per_class')
    node.ann_file = str(tmp_path / 'labeled_4-per-class.txt')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        labeled = DATASETS.build(node)
    found = [line.split('\t') for line in entries(tmp_path / 'labeled_4-per-class.txt')]
    assert sorted(int(index) for index, _ in found) == labeled.indices
    assert np.bincount([int(label) for _, label in found]).tolist() == [4] * 10


@pytest.mark.parametrize('arguments, message', [
    (['--per-class', '4'], '--per-class 4: class a has only 3 samples'),
    (['--per-class', '0'], '--per-class: numbers >= 1'),
])
def test_wrong_numbers_of_each_class(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                     arguments: list[str], message: str) -> None:
    source = class_folders(tmp_path / 'train')
    command = ['--source', str(source), '--class-folders', '--out', str(tmp_path / 'out'), *arguments]
    assert tool.main(command) == 2 and message in capsys.readouterr().err
    assert tool.main([*command[:2], *command[3:5], '--per-class', '1']) == 2
    assert 'has no class; classes are folders below --source' in capsys.readouterr().err
