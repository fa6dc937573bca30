"""The numbers and the digest of a partial-label training set, through wrappers; none of its samples share a number."""

from pathlib import Path

import pytest
from mmengine.dataset import ConcatDataset, RepeatDataset
from test_partial_label_dataset import PlainClasses, build, pack, write  # same folder

from mmssl.datasets import MultiSourceDataset, PartialLabelDataset, Subset, partial_label_samples


def numbers(dataset) -> list[int]:
    return [dataset[i]['data_samples']['weak'].metainfo['sample_idx'] for i in range(len(dataset))]


def test_digest_knows_sets_order_and_length(tmp_path: Path) -> None:
    one = partial_label_samples(build(write(tmp_path)))
    assert (one.length, one.num_classes, len(one.digest)) == (6, 3, 32)
    assert one.origin.startswith(str(tmp_path / 'sets.txt')) and '(6 samples, 3 classes, sha256 ' in one.origin
    assert partial_label_samples(RepeatDataset(build(write(tmp_path)), 3)) == one
    digests = {one.digest}
    for sets, labels in ((['0 1', '1', '0 1 2', '0 2', '1 2', '1 2'], [0, 1, 2, 0, 1, 2]),
                         (['1', '0 1', '0 1 2', '0 2', '1 2', '2'], [1, 0, 2, 0, 1, 2]),
                         (['0 1', '1', '0 1 2', '0 2', '1 2'], [0, 1, 2, 0, 1])):
        path = tmp_path / 'other.txt'
        path.write_text(''.join(f'{line}\n' for line in sets))
        digests.add(partial_label_samples(build(str(path), labels)).digest)
    assert len(digests) == 4


def test_parts_of_one_source_are_numbered_through(tmp_path: Path) -> None:
    path = tmp_path / 'part.txt'
    path.write_text('0 1\n0 2\n')
    part = Subset(PlainClasses(pipeline=[pack], lazy_init=True), lambda whole: [0, 3])
    joined = ConcatDataset([PartialLabelDataset(part, str(path)), RepeatDataset(build(write(tmp_path)), 2)])
    dataset = MultiSourceDataset(dict(labeled=joined), allow_overlap=True)
    samples = partial_label_samples(dataset)
    assert samples.length == 12 and '(8 samples' in samples.origin
    found = numbers(dataset)
    assert found == [0, 3, *range(6, 12), *range(6, 12)] and max(found) < samples.length
    alone = MultiSourceDataset(dict(labeled=RepeatDataset(build(write(tmp_path)), 2)))
    assert partial_label_samples(alone).digest == partial_label_samples(build(write(tmp_path))).digest


def test_numbers_that_would_collide_are_refused(tmp_path: Path) -> None:
    first, second = build(write(tmp_path)), build(write(tmp_path))
    with pytest.raises(ValueError, match='number their samples from 0 each: put it into'):
        partial_label_samples(ConcatDataset([first, second]))
    with pytest.raises(ValueError, match=r"needs one source .* got \['a', 'b'\]"):
        partial_label_samples(MultiSourceDataset(dict(a=first, b=second), allow_overlap=True))


def test_data_without_a_candidate_file_is_refused(tmp_path: Path) -> None:
    plain = PlainClasses(pipeline=[pack])
    with pytest.raises(ValueError, match='must be a mmssl.PartialLabelDataset, got PlainClasses'):
        partial_label_samples(RepeatDataset(plain, 2))
    with pytest.raises(ValueError, match='got none'):
        partial_label_samples(MultiSourceDataset(dict(a=plain)))
    joined = ConcatDataset([plain, build(write(tmp_path))])
    with pytest.raises(ValueError, match='must be a mmssl.PartialLabelDataset, got PlainClasses'):
        partial_label_samples(MultiSourceDataset(dict(a=joined), allow_overlap=True))
