"""tools/unsupervised_segment.py: results, their score, what it refuses to overwrite, and odd images."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image

SMALL = ['model.channels=8', 'model.num_labels=12', 'default_hooks.logger.interval=3']


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location('unsupervised_segment', repo_root / 'tools/unsupervised_segment.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Function that runs the tool on small networks; returns the folder of the results."""
    # The runner formats the config several times, which takes longer than the training.
    monkeypatch.setattr(Config, 'pretty_text', property(lambda config: repr(config._cfg_dict.to_dict())))

    def call(*arguments: str, out: str = 'out', iters: int = 6) -> Path:
        arguments = [*arguments, '--out', str(tmp_path / out), '--cfg-options', *SMALL, f'train_cfg.max_iters={iters}']
        tool.run(tool.parse_args(arguments), lambda: None)
        return tmp_path / out

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two images of 16 x 20 pixels, left half dark, and their truth."""
    for name in ('img', 'truth'):
        (tmp_path / name).mkdir()
    halves = np.zeros((16, 20), np.uint8)
    halves[:, 10:] = 1
    for index in range(2):
        cv2.imwrite(str(tmp_path / f'img/{index}.png'), np.repeat(halves[..., None] * 200 + index, 3, axis=2))
        cv2.imwrite(str(tmp_path / f'truth/{index}.png'), halves)
    return tmp_path


def test_methods_stand_side_by_side(run: Callable[..., Path], folder: Path, capsys: pytest.CaptureFixture) -> None:
    out = run(str(folder / 'img'), '--truth', str(folder / 'truth'))
    report = json.loads((out / 'scores.json').read_text())
    assert list(report['images']) == ['0.png', '1.png'] and list(report['mean']) == ['ce', 'adr']
    for method in ('ce', 'adr'):
        scores = []
        for name, entry in report['images'].items():
            labels = np.asarray(Image.open(out / f'{name[0]}_{method}.png'))
            assert labels.shape == (16, 20) and len(np.unique(labels)) == entry[method]['labels']
            scores.append(entry[method]['mIoU'])
        assert 0 < sum(scores) / 2 == pytest.approx(report['mean'][method]['mIoU'])
    # Image, truth and both methods.
    height, width, _ = np.asarray(Image.open(out / '0.png')).shape
    assert width > 3.5 * height
    assert '[2/2] 1.png: CE + ADR: ' in capsys.readouterr().out
    for method in ('ce', 'adr'):
        (log, ) = out.glob(f'logs/0/{method}/*/vis_data/scalars.json')
        assert ('loss_regularizer' in log.read_text()) == (method == 'adr')
    # Nothing is lost, and the same seed gives the same files.
    with pytest.raises(FileExistsError, match=r'--out: .*0\.png and more would be overwritten.*--overwrite'):
        run(str(folder / 'img'))
    again = run(str(folder / 'img/0.png'), '--config', 'ce', out='again')
    assert (again / '0_ce.png').read_bytes() == (out / '0_ce.png').read_bytes()
    other = run(str(folder / 'img/0.png'), '--config', 'ce', '--seed', '1', out='other')
    assert (other / '0_ce.png').read_bytes() != (out / '0_ce.png').read_bytes()


@pytest.mark.parametrize('kind', ['gray', 'alpha', 'narrow', 'large', 'CMYK', 'turned'])
def test_odd_images(kind: str, run: Callable[..., Path], tmp_path: Path) -> None:
    colors = np.random.default_rng(0).integers(0, 256, (12, 18, 3), np.uint8)
    path, options = tmp_path / 'a.png', []
    image = Image.fromarray(colors)
    if kind == 'gray':
        image = image.convert('L')
    elif kind == 'alpha':
        image.putalpha(100)
    elif kind == 'narrow':
        image = image.crop((0, 0, 1, 12))
    elif kind == 'large':
        image, options = image.resize((180, 120)), ['--max-side', '12']
    elif kind == 'CMYK':
        image, path = image.convert('CMYK'), tmp_path / 'a.jpg'
    exif = Image.Exif()
    if kind == 'turned':
        exif[0x0112], path = 6, tmp_path / 'a.jpg'
    image.save(path, exif=exif)
    out = run(str(path), '--config', 'ce', *options)
    size = image.size[::-1] if kind == 'turned' else image.size
    assert Image.open(out / 'a_ce.png').size == size


def test_scribbles_name_labels(run: Callable[..., Path], folder: Path) -> None:
    scribbles = np.full((16, 20), 255, np.uint8)
    scribbles[2:6, 2:6], scribbles[2:6, 14:18] = 0, 1
    cv2.imwrite(str(folder / 'scribbles.png'), scribbles)
    out = run(str(folder / 'img/0.png'), '--config', 'ce', '--scribbles', str(folder / 'scribbles.png'), iters=40)
    labels = np.asarray(Image.open(out / '0_ce.png'))
    assert (labels[2:6, 2:6] == 0).mean() > 0.9 and (labels[2:6, 14:18] == 1).mean() > 0.9


@pytest.mark.parametrize('arguments, message', [
    (['nowhere.png'], r'IMAGE: nowhere\.png does not exist'),
    (['{0}/img/0.png', '{0}/truth/0.png'], r'IMAGE: .*img/0\.png and .*truth/0\.png would have results of one name'),
    (['{0}/img', '--truth', '{0}/none'], r'--truth: .*none is no folder'),
    (['{0}/img', '--truth', '{0}/img/..'], r'`seg_map_path` .*lacks'),
    (['{0}/img', '--max-side', '1'], r'--max-side must be at least 2, got 1'),
    (['{0}/img', '--config', 'ce', 'ce'], r"--config: two configs are called 'ce'"),
    (['{0}/img', '--config', '{1}/configs/demo/cps_shapes.py'], r"model\.type is '.*', it has to be"),
])  # fmt: skip
def test_wrong_arguments(arguments: list[str], message: str, run: Callable[..., Path], folder: Path,
                         repo_root: Path, tool: ModuleType, tmp_path: Path) -> None:  # fmt: skip
    arguments = [argument.format(folder, repo_root) for argument in arguments]
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        tool.run(tool.parse_args([*arguments, '--out', str(tmp_path / 'out')]), lambda: None)
    assert not list(tmp_path.glob('out/*.png'))
