"""The mIoU of segments: values by hand, people, images, and what is refused."""

from typing import Any

import pytest
import torch
from mmengine.evaluator import Evaluator
from mmengine.structures import BaseDataElement, PixelData

from mmssl.evaluation import SegmentMatchingIoU


def sample(prediction: Any, *truths: Any) -> BaseDataElement:
    item = BaseDataElement(metainfo=dict(img_path='a.png'))
    item.set_data(dict(pred_segments=PixelData(data=torch.tensor([prediction]))))
    if truths:
        item.set_data(dict(gt_segments=PixelData(data=torch.tensor(truths))))
    return item


def score(*samples: BaseDataElement, **options: Any) -> dict[str, float]:
    evaluator = Evaluator(dict(type='mmssl.SegmentMatchingIoU', **options))
    evaluator.process(list(samples))
    return evaluator.evaluate(len(samples))


HALVES, QUARTERS = [[1, 1, 2, 2]], [[1, 2, 3, 4]]


def test_values_by_hand() -> None:
    assert score(sample(HALVES, HALVES)) == {'segments/mIoU': 100, 'segments/num_labels': 2}
    # Two people: (1 + 1) / 2, and four segments with 1/2 each.
    assert score(sample(HALVES, HALVES, QUARTERS))['segments/mIoU'] == 75
    assert score(sample(HALVES, HALVES, QUARTERS), annotators='fine')['segments/mIoU'] == 50
    assert score(sample(HALVES, HALVES, QUARTERS), annotators='coarse')['segments/mIoU'] == 100
    # Images count equally, however many segments they have.
    both = score(sample(HALVES, HALVES), sample(HALVES, QUARTERS))
    assert both == {'segments/mIoU': 75, 'segments/num_labels': 2}


def test_unknown_pixels_and_images_count_for_nothing() -> None:
    assert score(sample([[1, 1, 2, 1]], [[1, 1, 2, -1]]))['segments/mIoU'] == 100
    assert score(sample(HALVES, HALVES), sample(QUARTERS, [[-1] * 4]))['segments/num_labels'] == 2


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`annotators` must be one of .*'fine'.*got 'best'"):
        SegmentMatchingIoU(annotators='best')
    with pytest.raises(KeyError, match=r"'a\.png' has no true segments: .*seg_map_path"):
        score(sample(HALVES))
    with pytest.raises(ValueError, match=r"'a\.png' has the size \(1, 4\), its truth \(1, 2\)"):
        score(sample(HALVES, [[1, 2]]))
    with pytest.raises(ValueError, match='no image has a true segment'):
        score(sample(HALVES, [[-1] * 4]))
