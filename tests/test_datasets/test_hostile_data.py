"""Data as users bring it: odd pictures, odd names, odd lists. Each works, or is an error that says what to do."""

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image

pytest.importorskip('mmseg')

from mmssl.datasets import SplitSegDataset, UnlabeledImageDataset
from mmssl.registry import DATASETS
from mmssl.utils.checks import Report, full_check, quick_check

LABELS = np.repeat(np.array([0, 1, 2, 255], np.uint8), 5)[:, None] * np.ones((1, 24), np.uint8)  # 20 x 24
CLASSES = ('a', 'b', 'c')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Images a to d, of which a and b have labels."""
    for number, stem in enumerate('abcd'):
        write(tmp_path / f'img/{stem}.png', picture(number))
    for stem in 'ab':
        write(tmp_path / f'ann/{stem}.png', LABELS)
    (tmp_path / 'labeled.txt').write_text('a\nb\n')
    (tmp_path / 'unlabeled.txt').write_text('c\nd\n')
    return tmp_path


def picture(seed: int, shape: tuple[int, ...] = (20, 24, 3)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def write(path: Path, values: np.ndarray, mode: str | None = None, **kwargs: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values)
    (image if mode is None else image.convert(mode)).save(path, **kwargs)
    return path


def config(root: Path, labeled: dict | None = None, unlabeled: dict | None = None) -> Config:
    """A semi-supervised config without model around the two sources."""
    branches = ['sup', 'unsup_weak']
    load = [dict(type='LoadImageFromFile')]
    sup = dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])
    weak = dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[dict(type='mmssl.PackSemiSegInputs')])
    sources = dict(
        labeled=dict(
            type='mmssl.SplitSegDataset', data_root=str(root), ann_file='labeled.txt', img_suffix='.png',
            data_prefix=dict(img_path='img', seg_map_path='ann'), metainfo=dict(classes=CLASSES),
            pipeline=[*load, dict(type='LoadAnnotations'), sup], **(labeled or {})),
        unlabeled=dict(
            dict(type='mmssl.UnlabeledImageDataset', data_root=str(root), ann_file='unlabeled.txt', img_path='img',
                 pipeline=[*load, weak]), **(unlabeled or {})))  # yapf: disable
    return Config(
        dict(
            default_scope='mmseg',
            model=dict(
                type='mmssl.CrossPseudoSupervision',
                segmentor=dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=3)),
                data_preprocessor=dict(
                    type='mmssl.MultiBranchDataPreprocessor',
                    data_preprocessor=dict(type='SegDataPreProcessor', mean=[0.] * 3, std=[1.] * 3))),
            train_dataloader=dict(
                batch_size=2,
                sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
                dataset=dict(type='mmssl.MultiSourceDataset', sources=sources))))


def checked(cfg: Config) -> Report:
    return full_check(cfg, memory=False)


def loaded(cfg: Config) -> list[dict]:
    """All items of the training data set, as training gets them."""
    from mmengine.registry import init_default_scope
    init_default_scope('mmseg')
    for source in cfg.train_dataloader.dataset.sources.values():
        source.serialize_data = False  # which would cost a garbage collection
    data = DATASETS.build(cfg.train_dataloader.dataset)
    return [data[index] for index in range(len(data))]


def messages(report: Report) -> str:
    return '\n'.join(map(str, report.errors))


def test_the_plain_case(root: Path) -> None:
    report = checked(config(root))
    assert report.findings == [] and len(loaded(config(root))) == 4


# --- pictures -----------------------------------------------------------------------------------------------------

FORMS: dict[str, Callable[[Path], Any]] = {
    'gray': lambda path: write(path, picture(9, (20, 24))),
    'gray and alpha': lambda path: write(path, picture(9), 'LA'),
    'RGBA': lambda path: write(path, picture(9, (20, 24, 4))),
    'palette': lambda path: write(path, picture(9), 'P'),
    'bilevel': lambda path: write(path, picture(9), '1'),
    '16 bit': lambda path: write(path, picture(9, (20, 24)).astype(np.uint16) * 257),
    'CMYK': lambda path: write(path, picture(9), 'CMYK', format='JPEG'),
    'JPEG named PNG': lambda path: write(path, picture(9), format='JPEG'),
}


@pytest.mark.parametrize('source', ['labeled', 'unlabeled'])
def test_images_of_any_form_become_three_channels(root: Path, source: str) -> None:
    for form, make in FORMS.items():
        make(root / f'img/{form}.png')
        write(root / f'ann/{form}.png', LABELS)
    (root / f'{source}.txt').write_text('\n'.join(FORMS) + '\n')
    assert checked(config(root)).findings == []
    for item in loaded(config(root)):
        for inputs in item['inputs'].values():
            assert inputs is None or (inputs.shape == (3, 20, 24) and not inputs.dtype.is_floating_point)


def test_number_of_channels_is_compared_with_the_model(root: Path) -> None:
    write(root / 'img/c.png', picture(9, (20, 24, 4)))
    cfg = config(root)
    cfg.train_dataloader.dataset.sources.unlabeled.pipeline[0].color_type = 'unchanged'
    assert 'number of channels than the 3' in messages(checked(cfg)) and 'c.png has 4' in messages(checked(cfg))


@pytest.mark.parametrize('source', ['labeled', 'unlabeled'])
def test_damaged_images_are_found(root: Path, source: str) -> None:
    names = []
    for suffix in ('.jpg', '.png', '.bmp', '.tif', '.webp'):
        for kind in ('truncated', 'empty', 'text'):
            path = write(root / f'img/{kind}_{suffix[1:]}{suffix}', picture(9, (200, 240, 3)))
            write(root / f'ann/{path.stem}.png', np.zeros((200, 240), np.uint8))
            whole = path.read_bytes()
            path.write_bytes({'truncated': whole[:len(whole) * 2 // 3], 'empty': b'', 'text': b'no picture'}[kind])
            names.append(path.name)
    (root / f'{source}.txt').write_text('\n'.join(names) + '\n')
    report = checked(config(root))
    assert '15 images cannot be read' in messages(report)
    assert {error.key for error in report.errors} == {f'train_dataloader.dataset.sources.{source}'}


def test_truncated_files_pass_the_headers_alone(root: Path) -> None:
    """Why the full check decodes: OpenCV fills up what is missing and says nothing."""
    path = write(root / 'img/c.png', picture(9))
    path.write_bytes(path.read_bytes()[:-600])
    assert quick_check(config(root)).errors == []
    assert 'c.png' in messages(checked(config(root)))


@pytest.mark.parametrize('backend', ['pillow', 'cv2'])
def test_truncated_labels_are_found(root: Path, backend: str) -> None:
    noise = np.random.default_rng(0).integers(0, 3, (20, 24), np.uint8)
    path = write(root / 'ann/b.png', noise)
    path.write_bytes(path.read_bytes()[:-60])
    cfg = config(root)
    cfg.train_dataloader.dataset.sources.labeled.pipeline[1].imdecode_backend = backend
    assert '1 label files cannot be read' in messages(checked(cfg)) and 'b.png' in messages(checked(cfg))


def test_images_that_are_turned_by_their_camera(root: Path) -> None:
    """Loading turns the image; the labels, drawn on the turned or on the stored one, stay as they are."""
    exif = Image.Exif()
    exif[0x0112] = 6
    (root / 'img/a.png').unlink()
    write(root / 'img/a.jpg', picture(9), exif=exif)
    (root / 'labeled.txt').write_text('a.jpg\nb\n')
    report = checked(config(root))
    assert 'a.jpg is 20x24 (as its EXIF orientation 6 turns it)' in messages(report)
    assert ['EXIF orientation' in warning.message for warning in report.warnings] == [True]
    write(root / 'ann/a.png', LABELS.T.copy())
    report = checked(config(root))
    assert report.errors == [] and len(report.warnings) == 1
    assert loaded(config(root))[0]['inputs']['sup'].shape == (3, 24, 20)


def test_images_larger_than_pil_likes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 480)
    write(root / 'img/c.png', picture(9, (40, 48, 3)))
    report = checked(config(root))
    assert report.findings == [] and report.image_sizes[1].largest == (48, 40)


# --- label maps ---------------------------------------------------------------------------------------------------

INDEXED = Image.fromarray(LABELS, 'P')
INDEXED.putpalette([7 * i % 256 for i in range(768)])


@pytest.mark.parametrize(('values', 'mode', 'expected'), [
    (INDEXED, None, ''),
    (LABELS.astype(np.uint16), None, ''),
    (LABELS.astype(np.uint16) * 256, None, 'more than 8 bits'),
    (INDEXED, 'RGB', 'several channels'),
    (LABELS, 'RGBA', 'several channels'),
    (LABELS, 'LA', 'several channels'),
    (np.where(LABELS == 255, 255, LABELS + 1).astype(np.uint8), None, 'reduce_zero_label'),
    (np.where(LABELS == 255, 3, LABELS).astype(np.uint8), None, '[3]'),
    (LABELS[:10], None, 'not as large as their images'),
    (LABELS.T.copy(), None, 'not as large as their images'),
], ids=['palette', '16 bit', 'beyond 8 bits', 'colors', 'RGBA', 'LA', 'from 1', '3 of 3', 'smaller', 'turned'])
def test_label_maps(root: Path, values: Any, mode: str | None, expected: str) -> None:
    image = values if isinstance(values, Image.Image) else Image.fromarray(values)
    (image if mode is None else image.convert(mode)).save(root / 'ann/b.png')
    report = checked(config(root))
    assert (expected in messages(report)) if expected else report.findings == [], messages(report)
    if not expected:
        assert np.array_equal(loaded(config(root))[1]['data_samples']['sup'].gt_sem_seg.data[0], LABELS)


def test_more_classes_than_eight_bits_hold(root: Path) -> None:
    cfg = config(root)
    cfg.model.segmentor.decode_head.num_classes = 300
    cfg.train_dataloader.dataset.sources.labeled.metainfo = dict(classes=[str(i) for i in range(300)])
    with pytest.raises(ValueError, match=r'decode_head\.num_classes: is 300, but .* 0 to 254'):
        quick_check(cfg)


def test_jpeg_labels_are_warned_about(root: Path) -> None:
    write(root / 'ann/b.png', np.zeros((20, 24), np.uint8), format='JPEG')
    warnings = [warning.message for warning in checked(config(root)).warnings]
    assert any('JPEG' in message and 'b.png' in message for message in warnings)


def test_bilevel_masks_are_two_classes(root: Path) -> None:
    for stem in 'ab':
        write(root / f'ann/{stem}.png', LABELS > 0, '1')
    cfg = config(root)
    cfg.train_dataloader.dataset.sources.labeled.metainfo = dict(classes=('off', 'on'))
    cfg.model.segmentor.decode_head.num_classes = 2
    report = checked(cfg)
    assert report.findings == [] and report.histograms[0].pixels == [2 * 5 * 24, 2 * 15 * 24]


def test_reduce_zero_label(root: Path) -> None:
    for stem in 'ab':
        write(root / f'ann/{stem}.png', np.where(LABELS == 255, 0, LABELS + 1).astype(np.uint8))
    report = checked(config(root, dict(reduce_zero_label=True)))
    assert report.findings == [] and report.histograms[0].pixels == [240] * 3 and report.histograms[0].ignored == 240


def test_reduce_zero_label_that_hides_a_class(root: Path) -> None:
    (warning,) = checked(config(root, dict(reduce_zero_label=True))).warnings
    assert "['c']" in warning.message and 'reduce_zero_label' in warning.message


# --- names --------------------------------------------------------------------------------------------------------

NAMES = ['my cat 1', 'größe', 'шапка', '画像', 'a.b.c', 'a[1]', 'a*', 'a#1', "it's", 'x' * 200]


@pytest.mark.parametrize('form', ['{0}', '{0}.png', 'img/{0}.png\tann/{0}.png', 'img/{0}.png ann/{0}.png',
                                  '{root}/img/{0}.png'])
def test_names(root: Path, form: str) -> None:
    for name in NAMES:
        write(root / f'img/{name}.png', picture(5))
        write(root / f'ann/{name}.png', LABELS)
    lines = [form.format(name, root=root) for name in NAMES]
    (root / 'labeled.txt').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    assert messages(checked(config(root))) == ''
    for name, item in zip(NAMES, loaded(config(root)), strict=False):
        sample = item['data_samples']['sup']
        assert sample.img_path == str(root / f'img/{name}.png')
        assert sample.seg_map_path == str(root / f'ann/{name}.png')


@pytest.mark.parametrize('folder', ['with space', 'brackets [1]', 'star*', 'ünïcode'])
@pytest.mark.parametrize('unlabeled', [{}, dict(ann_file='', img_path='img/*.png', exclude='labeled.txt')])
def test_folders_with_odd_names(root: Path, folder: str, unlabeled: dict) -> None:
    moved = root / folder
    moved.mkdir()
    for name in ('img', 'ann', 'labeled.txt', 'unlabeled.txt'):
        (root / name).rename(moved / name)
    cfg = config(moved, unlabeled=unlabeled)
    assert messages(checked(cfg)) == ''
    assert [item['data_samples']['unsup_weak'].img_path for item in loaded(cfg)[2:]] == [
        str(moved / f'img/{stem}.png') for stem in 'cd']


@pytest.mark.parametrize('ending', ['.PNG', '.JPG', '.Jpeg'])
def test_endings_in_capitals(root: Path, ending: str) -> None:
    (root / 'img/a.png').unlink()
    (root / 'img/c.png').unlink()
    kind = {'.PNG': 'PNG'}.get(ending, 'JPEG')
    write(root / f'img/a{ending}', picture(1), format=kind)
    write(root / f'img/c{ending}', picture(2), format=kind)
    (root / 'ann/a.png').rename(root / 'ann/a.PNG')
    lower = ending.lower()
    listed = 'a' + (ending if ending == '.Jpeg' else lower)
    (root / 'labeled.txt').write_text(f'{listed}\nb.png\n')
    (root / 'unlabeled.txt').write_text(f'c{ending}\nd\n')
    cfg = config(root)
    assert messages(checked(cfg)) == ''
    items = loaded(cfg)
    assert items[0]['data_samples']['sup'].img_path.endswith(f'img/a{ending}')
    assert items[0]['data_samples']['sup'].seg_map_path.endswith('ann/a.PNG')
    assert items[2]['data_samples']['unsup_weak'].img_path.endswith(f'img/c{ending}')


def test_ids_find_endings_in_capitals(root: Path) -> None:
    (root / 'img/a.png').rename(root / 'img/a.PNG')
    assert messages(checked(config(root))) == ''


@pytest.mark.parametrize(('listed', 'stored'), [('NFC', 'NFD'), ('NFD', 'NFC')])
def test_accents_written_in_two_ways(root: Path, listed: str, stored: str) -> None:
    name = unicodedata.normalize(stored, 'é')
    write(root / f'img/{name}.png', picture(5))
    write(root / f'ann/{name}.png', LABELS)
    (root / 'labeled.txt').write_text(unicodedata.normalize(listed, 'é') + '\n', encoding='utf-8')
    assert messages(checked(config(root))) == ''


def test_links(root: Path) -> None:
    (root / 'store').mkdir()
    for name in ('img/a.png', 'ann/a.png', 'img/c.png'):
        (root / name).rename(root / 'store' / name.replace('/', '_'))
        (root / name).symlink_to(root / 'store' / name.replace('/', '_'))
    (root / 'img').rename(root / 'real')
    (root / 'img').symlink_to(root / 'real', target_is_directory=True)
    assert checked(config(root)).findings == []


@pytest.mark.parametrize(('name', 'unlabeled', 'words'), [
    ('img/a.png', {}, r'1 \(first: a\) are not in'),
    ('ann/a.png', {}, 'label maps are missing: 1'),
    ('img/c.png', {}, r'1 \(first: c\) are not in'),
    ('img/c.png', dict(ann_file='', img_path='img', exclude='labeled.txt'), 'is a link to .*nowhere'),
])
def test_links_to_nowhere(root: Path, name: str, unlabeled: dict, words: str) -> None:
    (root / name).unlink()
    (root / name).symlink_to(root / 'nowhere.png')
    with pytest.raises(FileNotFoundError, match=words):
        quick_check(config(root, unlabeled=unlabeled))


def test_link_to_itself(root: Path) -> None:
    (root / 'img/a.png').unlink()
    (root / 'img/a.png').symlink_to(root / 'img/a.png')
    with pytest.raises(FileNotFoundError, match=r'1 \(first: a\) are not in'):
        quick_check(config(root))


def test_two_images_with_one_label_map(root: Path) -> None:
    write(root / 'img/a.jpg', picture(1))
    (root / 'labeled.txt').write_text('a.png\na.jpg\n')
    with pytest.raises(ValueError, match=r'a\.png. and .*a\.jpg. have the same label map .*ann/a\.png'):
        quick_check(config(root))


# --- lists --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('content', [
    b'a\r\nb\r\n', b'\xef\xbb\xbfa\nb\n', b'a\rb\r', b'a\nb', b'  a\t\nb   \n\n\n', b'# header\n\na\n  # more\nb\n',
    b'./a\nb.png\n', b'img/a.png\n./img/b.png\n',
], ids=['windows', 'bom', 'old mac', 'no last newline', 'blanks', 'comments', 'spellings', 'root'])  # fmt: skip
def test_lists_that_work(root: Path, content: bytes) -> None:
    (root / 'labeled.txt').write_bytes(content)
    assert checked(config(root)).findings == []
    assert [Path(item['data_samples']['sup'].seg_map_path).name for item in loaded(config(root))[:2]] == [
        'a.png', 'b.png']


@pytest.mark.parametrize(('content', 'words'), [
    (b'', 'names no image'),
    (b'\n\n', 'names no image'),
    (b'# only\n# comments\n', 'names no image'),
    (b'\xef\xbb\xbf# only\r\n', 'names no image'),
    (b'a\nb\na\n', 'twice, in lines 1 and 3'),
    (b'a\na.png\n', 'twice, as .a. in line 1 and as .a.png. in line 2'),
    (b'a\n./a\n', 'twice, as .a. in line 1 and as .\\./a. in line 2'),
    (b'a\nimg/a.png\n', 'twice'),
    (b'a\nnope\n', r'of the 2 images listed, 1 \(first: nope\)'),
    (b'/no/where/a.png\n', r'1 \(first: /no/where/a.png\)'),
    ('a\nb\n'.encode('utf-16'), 'not a text file in UTF-8'),
    ('größe\n'.encode('latin-1'), 'not a text file in UTF-8'),
    (b'a,ann/a.png\n', r'1 \(first: a,ann/a.png\)'),
    (b'img\\a.png\n', 'first: '),
])  # fmt: skip
@pytest.mark.parametrize('source', ['labeled', 'unlabeled'])
def test_lists_that_cannot(root: Path, content: bytes, words: str, source: str) -> None:
    (root / f'{source}.txt').write_bytes(content)
    other = 'unlabeled' if source == 'labeled' else 'labeled'
    (root / f'{other}.txt').write_text('d\n' if other == 'unlabeled' else 'b\n')
    with pytest.raises((ValueError, FileNotFoundError), match=words) as caught:
        quick_check(config(root))
    assert f'sources.{source}' in str(caught.value) and f'{source}.txt' in str(caught.value)


@pytest.mark.parametrize('spelling', ['a', 'a.png', './a.png', 'img/a.png', '../{name}/img/a.png', '{root}/img/a.png',
                                      'link.png'])
def test_one_image_in_both_lists(root: Path, spelling: str) -> None:
    (root / 'img/link.png').symlink_to(root / 'img/a.png')
    (root / 'unlabeled.txt').write_text(spelling.format(root=root, name=root.name) + '\nd\n')
    with pytest.raises(ValueError, match=r'1 images? are in `labeled` and in `unlabeled`'):
        quick_check(config(root))


# --- settings -----------------------------------------------------------------------------------------------------


def test_exclude_that_names_nothing(root: Path) -> None:
    for clip in '12':
        write(root / f'clips/{clip}/frame_1.png', picture(int(clip)))
    (root / 'used.txt').write_text('frame_1\n')
    options = dict(data_root=str(root), img_path='clips/*/frame_*.png')
    with pytest.raises(ValueError, match=r'`exclude`=.*used\.txt.* names no image that exists \(first: frame_1\)'):
        UnlabeledImageDataset(exclude='used.txt', **options)
    (root / 'used.txt').write_text('1/frame_1\n')
    assert len(UnlabeledImageDataset(exclude='used.txt', **options)) == 1
    (root / 'none').mkdir()
    with pytest.raises(ValueError, match=r'`exclude`=.*none.* names no image that exists'):
        UnlabeledImageDataset(exclude=['used.txt', 'none'], **options)


@pytest.mark.parametrize('suffix', ['png', 'JPG'])
def test_suffixes_without_a_dot(root: Path, suffix: Any) -> None:
    with pytest.raises(ValueError, match='`suffix`'):
        UnlabeledImageDataset(data_root=str(root), img_path='img', suffix=[suffix])
    for key in ('img_suffix', 'seg_map_suffix'):
        with pytest.raises(ValueError, match=f'mmssl.SplitSegDataset: `{key}`'):
            SplitSegDataset(data_root=str(root), data_prefix=dict(img_path='img'), **{key: suffix})


def test_data_prefix_of_unlabeled_images(root: Path) -> None:
    with pytest.raises(ValueError, match='has no `data_prefix`; write img_path='):
        UnlabeledImageDataset(data_root=str(root), data_prefix=dict(img_path='img'))


@pytest.mark.parametrize(('prefix', 'kind', 'words'), [
    (dict(img_path='img', seg_path='ann'), ValueError, r'data_prefix\.seg_path: is not read by .*seg_map_path'),
    (dict(img='img', seg_map_path='ann'), ValueError, r'data_prefix\.img: is not read by .*img_path'),
    (dict(img_path='im', seg_map_path='ann'), FileNotFoundError, r'data_prefix\.img_path: no such folder: .*im'),
    (dict(img_path='img', seg_map_path='an'), FileNotFoundError, r'data_prefix\.seg_map_path: no such folder'),
])
@pytest.mark.parametrize('kind_of_data', ['mmssl.SplitSegDataset', 'BaseSegDataset'])
def test_typos_in_data_prefix(root: Path, prefix: dict, kind: type, words: str, kind_of_data: str) -> None:
    cfg = config(root)
    cfg.train_dataloader.dataset.sources.labeled.update(type=kind_of_data)
    cfg.train_dataloader.dataset.sources.labeled.data_prefix = prefix
    with pytest.raises(kind, match=rf'sources\.labeled\.{words}'):
        quick_check(cfg)


def test_unknown_prefix_of_split_seg_dataset(root: Path) -> None:
    with pytest.raises(KeyError, match=r'`data_prefix` has .*seg_path.*allowed'):
        SplitSegDataset(data_root=str(root), data_prefix=dict(img_path='img', seg_path='ann'))


def test_absolute_list_and_folders(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    relative = os.path.relpath(root)
    (root / 'labeled.txt').write_text(f'{root}/img/a.png\n')
    cfg = config(Path(relative))
    assert messages(checked(cfg)) == ''
    assert loaded(cfg)[0]['data_samples']['sup'].seg_map_path == os.path.join(relative, 'ann/a.png')


