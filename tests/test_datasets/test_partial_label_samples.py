"""The numbers and the digest of a partial-label training set, through wrappers; none of its samples share a number."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from mmengine.dataset import BaseDataset, ConcatDataset
from mmengine.registry import DATASETS
from mmengine.structures import BaseDataElement

from mmssl.datasets import MultiSourceDataset, Subset, partial_label_samples

SETS = ['0 1', '1', '0 1 2', '0 2', '1 2', '2']


@DATASETS.register_module(force=True)
class SixImages(BaseDataset):
    """Images of three classes, the same two times over; or as many as it is told."""

    METAINFO: ClassVar = dict(classes=['a', 'b', 'c'])

    def __init__(self, number=6, **kwargs):
        self.number = number
        super().__init__(**kwargs)

    def load_data_list(self):
        return [dict(img_path=f'{i}.jpg', gt_label=i % 3) for i in range(self.number)]


def pack(info):
    return dict(inputs=0, data_samples=dict(weak=BaseDataElement(metainfo=dict(sample_idx=info['sample_idx']))))


def write(folder: Path, sets: list[str] = SETS, name: str = 'sets.txt') -> str:
    path = folder / name
    path.write_text(''.join(f'{line}\n' for line in sets))
    return str(path)


def config(path: str, number: int = 6) -> dict:
    return dict(type='mmssl.PartialLabelDataset', candidate_file=path,
                dataset=dict(type='SixImages', number=number, pipeline=[pack]))


def repeated(times: int, path: str) -> dict:
    return dict(type='RepeatDataset', times=times, dataset=config(path))


def build(node: dict) -> Any:
    return DATASETS.build(node)


def numbers(dataset) -> list[int]:
    return [dataset[i]['data_samples']['weak'].metainfo['sample_idx'] for i in range(len(dataset))]


def test_digest_knows_sets_order_and_length(tmp_path: Path) -> None:
    path = write(tmp_path)
    one = partial_label_samples(build(config(path)))
    assert (one.length, one.num_classes, len(one.digest)) == (6, 3, 32)
    assert one.origin.startswith(path) and '(6 samples, 3 classes, sha256 ' in one.origin
    assert partial_label_samples(build(repeated(3, path))) == one
    digests = {one.digest}
    for sets in (['0 1', '1', '0 1 2', '0 2', '1 2', '1 2'], ['0 1 2', '1', '0 1', '0 2', '1 2', '2'], SETS[:5],
                 [*SETS, '0']):  # fmt: skip
        other = config(write(tmp_path, sets, 'other.txt'), len(sets)) | dict(noisy=True)
        digests.add(partial_label_samples(build(other)).digest)
    assert len(digests) == 5


def test_parts_of_one_source_are_numbered_through(tmp_path: Path) -> None:
    path = write(tmp_path)
    part = dict(config(write(tmp_path, ['0 1', '0 2'], 'part.txt')),
                dataset=Subset(SixImages(pipeline=[pack], lazy_init=True), lambda whole: [0, 3]))
    joined = ConcatDataset([part, repeated(2, path)])
    dataset = MultiSourceDataset(dict(labeled=joined), allow_overlap=True)
    samples = partial_label_samples(dataset)
    assert samples.length == 12 and '(8 samples' in samples.origin
    found = numbers(dataset)
    assert found == [0, 3, *range(6, 12), *range(6, 12)] and max(found) < samples.length
    alone = MultiSourceDataset(dict(labeled=build(repeated(2, path))))
    assert partial_label_samples(alone).digest == partial_label_samples(build(config(path))).digest


def test_what_is_held_out_keeps_its_number(tmp_path: Path) -> None:
    whole = config(write(tmp_path))
    parts = [build(dict(whole, held_out=0.5, part=part)) for part in ('train', 'held_out')]
    samples = [partial_label_samples(part) for part in parts]
    assert [one.length for one in samples] == [6, 6] and samples[0].digest != samples[1].digest
    found = [numbers(part) for part in parts]
    assert len(found[0]) == 3 and sorted(found[0] + found[1]) == list(range(6))


def test_numbers_that_would_collide_are_refused(tmp_path: Path) -> None:
    node = config(write(tmp_path))
    with pytest.raises(ValueError, match='number their samples from 0 each: put it into'):
        partial_label_samples(ConcatDataset([dict(node), dict(node)]))
    with pytest.raises(ValueError, match=r"needs one source .* got \['a', 'b'\]"):
        partial_label_samples(MultiSourceDataset(dict(a=dict(node), b=dict(node)), allow_overlap=True))


def test_data_without_a_candidate_file_is_refused(tmp_path: Path) -> None:
    plain = dict(type='SixImages', pipeline=[pack])
    with pytest.raises(ValueError, match=r'must be a mmssl\.PartialLabelDataset, got SixImages'):
        partial_label_samples(build(dict(type='RepeatDataset', dataset=plain, times=2)))
    with pytest.raises(ValueError, match='got none'):
        partial_label_samples(MultiSourceDataset(dict(a=build(plain))))
    joined = ConcatDataset([dict(plain), config(write(tmp_path))])
    with pytest.raises(ValueError, match=r'must be a mmssl\.PartialLabelDataset, got SixImages'):
        partial_label_samples(MultiSourceDataset(dict(a=joined), allow_overlap=True))
