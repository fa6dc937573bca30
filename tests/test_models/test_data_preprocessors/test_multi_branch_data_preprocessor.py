"""Batches by branch: composition, padding, device, and validation batches that must not change."""

import copy

import pytest
import torch
from mmengine.dataset import pseudo_collate
from mmengine.model import BaseModel
from mmengine.structures import PixelData

pytest.importorskip('mmseg')

from mmseg.models import SegDataPreProcessor
from mmseg.structures import SegDataSample

from mmssl.models.data_preprocessors import MultiBranchDataPreprocessor
from mmssl.registry import MODELS

STOCK = dict(
    type='mmseg.SegDataPreProcessor',
    mean=[100., 110., 120.],
    std=[50., 60., 70.],
    bgr_to_rgb=True,
    pad_val=0,
    seg_pad_val=255,
    size_divisor=1)
BRANCHES = ('sup', 'unsup_weak', 'unsup_strong')


def view(height, width, mask=False, valid=False):
    sample = SegDataSample(metainfo=dict(img_path='x', img_shape=(height, width)))
    if mask:
        sample.gt_sem_seg = PixelData(data=torch.randint(0, 4, (1, height, width)))
    if valid:
        sample.valid_mask = PixelData(data=torch.rand(1, height, width) > 0.3)
    return torch.randint(0, 256, (3, height, width), dtype=torch.uint8), sample


def item(**views):
    return {
        key: {branch: views[branch][number] if branch in views else None for branch in BRANCHES}
        for number, key in enumerate(('inputs', 'data_samples'))
    }


def labeled(height=6, width=8):
    return item(sup=view(height, width, mask=True))


def unlabeled(height=6, width=8, valid=True):
    return item(unsup_weak=view(height, width, valid=valid), unsup_strong=view(height, width, valid=valid))


def build(**kwargs):
    return MODELS.build(dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=dict(STOCK, **kwargs)))


def test_regroups_and_normalizes_like_the_stock_preprocessor():
    items = [labeled(), unlabeled(), unlabeled(), labeled(), unlabeled(), unlabeled()]
    out = build()(pseudo_collate(items), training=True)
    assert {branch: tuple(inputs.shape) for branch, inputs in out['inputs'].items()} == {
        'sup': (2, 3, 6, 8), 'unsup_weak': (4, 3, 6, 8), 'unsup_strong': (4, 3, 6, 8)
    }
    stock = SegDataPreProcessor(**{key: value for key, value in STOCK.items() if key != 'type'})
    for branch in BRANCHES:
        own = [one for one in items if one['inputs'][branch] is not None]
        views = {key: [one[key][branch] for one in own] for key in ('inputs', 'data_samples')}
        expected = stock(views, True)
        assert torch.equal(out['inputs'][branch], expected['inputs'])
        assert len(out['data_samples'][branch]) == len(own)


def test_order_within_a_branch_is_kept():
    items = [labeled(), unlabeled(), unlabeled()]
    for number, one in enumerate(items):
        for branch in BRANCHES:
            if one['data_samples'][branch] is not None:
                one['data_samples'][branch].set_metainfo(dict(img_path=str(number)))
    out = build()(pseudo_collate(items), True)
    assert [sample.img_path for sample in out['data_samples']['unsup_weak']] == ['1', '2']
    assert [sample.img_path for sample in out['data_samples']['unsup_strong']] == ['1', '2']


@pytest.mark.parametrize('kwargs, shape', [
    (dict(size_divisor=1), (9, 11)),
    (dict(size_divisor=16), (16, 16)),
    (dict(size=(20, 24), size_divisor=None), (20, 24)),
])
def test_padding_is_right_below_and_marked(kwargs, shape):
    items = [labeled(5, 11), unlabeled(9, 7), unlabeled(6, 8)]
    before = [one['data_samples']['unsup_weak'].valid_mask.data.clone() for one in items[1:]]
    mask = items[0]['data_samples']['sup'].gt_sem_seg.data.clone()
    raw = [one['inputs']['unsup_weak'].clone() for one in items[1:]]
    out = build(**kwargs)(pseudo_collate(items), True)
    for branch in BRANCHES:
        assert out['inputs'][branch].shape[-2:] == shape, 'all branches have one size'
        for sample in out['data_samples'][branch]:
            assert sample.pad_shape == shape
    for number, (old, image) in enumerate(zip(before, raw, strict=True)):
        height, width = old.shape[1:]
        valid = out['data_samples']['unsup_weak'][number].valid_mask.data
        assert valid.dtype == torch.bool and valid.shape == (1, *shape)
        assert torch.equal(valid[:, :height, :width], old)
        assert valid.sum() == old.sum(), 'padding is never valid'
        got = out['inputs']['unsup_weak'][number]
        mean, std = torch.tensor(STOCK['mean']).view(3, 1, 1), torch.tensor(STOCK['std']).view(3, 1, 1)
        assert torch.allclose(got[:, :height, :width], (image.flip(0).float() - mean) / std)
        assert got[:, height:].abs().sum() == 0 and got[:, :, width:].abs().sum() == 0
        left, right, top, below = out['data_samples']['unsup_weak'][number].padding_size
        assert (left, right, top, below) == (0, shape[1] - width, 0, shape[0] - height)
    label = out['data_samples']['sup'][0].gt_sem_seg.data
    assert label.shape == (1, *shape) and torch.equal(label[:, :5, :11], mask)
    assert (label[:, 5:] == 255).all() and (label[:, :, 11:] == 255).all()


def test_without_valid_mask_none_is_made():
    out = build()(pseudo_collate([labeled(), unlabeled(valid=False), unlabeled(valid=False)]), True)
    assert all('valid_mask' not in sample for sample in out['data_samples']['unsup_weak'])


def test_validation_batches_pass_unchanged():
    """D2: whatever happens to unlabeled images, validation sees the stock preprocessor and nothing else."""
    image, sample = view(6, 8, mask=True)
    stock = SegDataPreProcessor(**{key: value for key, value in STOCK.items() if key != 'type'})
    ours = build()(dict(inputs=[image], data_samples=[sample]), False)
    theirs = stock(dict(inputs=[image], data_samples=[sample.clone()]), False)
    assert torch.equal(ours['inputs'], theirs['inputs'])
    assert torch.equal(ours['data_samples'][0].gt_sem_seg.data, theirs['data_samples'][0].gt_sem_seg.data)


def test_training_batch_without_branches():
    image, sample = view(6, 8, mask=True)
    with pytest.raises(ValueError, match=r'train_dataloader\.dataset must end in `mmssl\.MultiBranch`'):
        build()(dict(inputs=[image], data_samples=[sample]), True)


@pytest.mark.parametrize('items, words', [
    ([labeled], "no image for branch 'unsup_weak' and 'unsup_strong'"),
    ([unlabeled, unlabeled], "no image for branch 'sup'"),
])
def test_missing_branch_is_a_clear_error(items, words):
    """S3: never a KeyError."""
    with pytest.raises(ValueError, match=words) as info:
        build()(pseudo_collate([make() for make in items]), True)
    assert 'train_dataloader.batch_size' in str(info.value) and 'source_ratio' in str(info.value)


def test_change_of_mixture_is_a_clear_error():
    preprocessor = build()
    preprocessor(pseudo_collate([labeled(), unlabeled(), unlabeled()]), True)
    # A smaller or larger batch of the same mixture is fine: the last one of an epoch may be.
    preprocessor(pseudo_collate([labeled(), unlabeled(), unlabeled()] * 3), True)
    with pytest.raises(ValueError, match=r'mixture.*changes.*train_dataloader\.batch_size.*source_ratio'):
        preprocessor(pseudo_collate([labeled(), unlabeled(), unlabeled(), unlabeled()]), True)


def test_branches_in_evaluation():
    out = build()(pseudo_collate([labeled(), unlabeled()]), False)
    assert out['inputs']['sup'].shape == (1, 3, 6, 8)


@pytest.mark.parametrize('bad', [None, 3, torch.nn.Identity()])
def test_bad_inner_preprocessor(bad):
    with pytest.raises(TypeError, match=r'model\.data_preprocessor\.data_preprocessor'):
        MultiBranchDataPreprocessor(bad)


def test_device_is_that_of_the_inner_preprocessor():
    """`meta` stands in for a GPU: mmengine sets the device in several ways, all must reach both modules."""

    class Model(BaseModel):

        def forward(self, inputs, data_samples=None, mode='tensor'):
            return inputs

    preprocessor = build()
    assert preprocessor.device == preprocessor.data_preprocessor.device == torch.device('cpu')
    model = Model(data_preprocessor=preprocessor)
    model.to('meta')
    assert model.data_preprocessor.device == model.data_preprocessor.data_preprocessor.device == torch.device('meta')
    assert model.data_preprocessor.data_preprocessor.mean.device.type == 'meta'
    alone = build().to('meta')
    assert alone.device == alone.data_preprocessor.device == torch.device('meta')
    assert alone.cast_data(dict(x=[torch.zeros(1)]))['x'][0].device.type == 'meta'


def test_copies_keep_their_device():
    copied = copy.deepcopy(build().to('meta'))
    assert copied.device == copied.data_preprocessor.device == torch.device('meta')


def test_state_dict_holds_no_buffer():
    """mmseg's preprocessor keeps mean and std out of checkpoints; so does this one."""
    assert build().state_dict() == {}


def test_classification_samples():
    """The inner preprocessor sees one branch at a time, so unlabeled samples without labels do no harm."""
    pretrain = pytest.importorskip('mmpretrain')
    sample_type = pretrain.structures.DataSample
    preprocessor = MODELS.build(
        dict(
            type='mmssl.MultiBranchDataPreprocessor',
            data_preprocessor=dict(
                type='mmpretrain.ClsDataPreprocessor', mean=[0.] * 3, std=[1.] * 3, num_classes=3, to_onehot=True)))
    image = torch.zeros(3, 4, 4, dtype=torch.uint8)
    items = [item(sup=(image, sample_type().set_gt_label(1))),
             item(unsup_weak=(image, sample_type()), unsup_strong=(image, sample_type()))]
    out = preprocessor(pseudo_collate(items), True)
    assert out['inputs']['unsup_strong'].shape == (1, 3, 4, 4)
    assert out['data_samples']['sup'][0].gt_score.tolist() == [0, 1, 0]
    assert 'gt_score' not in out['data_samples']['unsup_weak'][0]


@pytest.mark.parametrize('size', [(9, 8), (6, 12), (4, 5)])
def test_images_on_top_of_a_batch_get_its_size(size):
    """Padded with what no loss counts, or cut, and no change of the mixture is seen in them."""
    items = [labeled(), labeled(), unlabeled()]
    model = build()
    model(pseudo_collate([labeled(), unlabeled()]), training=True)
    extra = model.extra(pseudo_collate(items), size)
    assert {branch: len(images) for branch, images in extra['inputs'].items()} == dict(
        sup=2, unsup_weak=1, unsup_strong=1)
    expected = build()(pseudo_collate(items), training=True)
    rows, columns = min(6, size[0]), min(8, size[1])
    for branch, images in extra['inputs'].items():
        assert images.shape[-2:] == size
        assert torch.equal(images[..., :rows, :columns], expected['inputs'][branch][..., :rows, :columns])
    for sample, before in zip(extra['data_samples']['sup'], expected['data_samples']['sup'], strict=True):
        label = sample.gt_sem_seg.data
        assert label.shape == (1, *size)
        assert torch.equal(label[..., :rows, :columns], before.gt_sem_seg.data[..., :rows, :columns])
        assert (label[:, 6:] == 255).all() and (label[..., 8:] == 255).all()
    valid = extra['data_samples']['unsup_weak'][0].valid_mask.data
    assert valid.shape == (1, *size)
    assert not valid[:, 6:].any() and not valid[..., 8:].any()
    # The mixture of the batches proper is remembered as before.
    model(pseudo_collate([labeled(), unlabeled()]), training=True)


def test_a_source_without_images_makes_no_branch():
    extra = build().extra(pseudo_collate([labeled()]), (6, 8))
    assert list(extra['inputs']) == ['sup'] == list(extra['data_samples'])
