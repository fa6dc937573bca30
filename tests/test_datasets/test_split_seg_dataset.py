"""VOC, Cityscapes, CamVid and own folder pairs, with every list format."""

import os

import pytest

pytest.importorskip('mmseg')

from mmseg.datasets import CityscapesDataset as MMSegCityscapes
from mmseg.datasets import PascalVOCDataset

from mmssl.datasets import CamVidDataset, CityscapesDataset, SplitSegDataset, VOCDataset
from mmssl.registry import DATASETS

LAYOUTS = {
    # class, image folder, label folder, image suffix, label suffix
    'mmssl.VOCDataset': ('JPEGImages', 'SegmentationClassAug', '.jpg', '.png'),
    'mmssl.CityscapesDataset': ('leftImg8bit/train', 'gtFine/train', '_leftImg8bit.png', '_gtFine_labelTrainIds.png'),
    'mmssl.CamVidDataset': ('img_dir/train', 'ann_dir/train', '.jpg', '.png'),
    'mmssl.SplitSegDataset': ('pictures', 'masks', '.tif', '_mask.png'),
}
STEMS = ['aachen/x_1', 'aachen/x_2', 'ulm/y_1']


@pytest.fixture(params=LAYOUTS)
def layout(request, tmp_path):
    images, labels, img_suffix, seg_suffix = LAYOUTS[request.param]
    for folder, suffix in ((images, img_suffix), (labels, seg_suffix)):
        for stem in STEMS:
            path = tmp_path / folder / (stem + suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def build(ann_file='', **kwargs):
        cfg = dict(
            type=request.param,
            data_root=str(tmp_path),
            data_prefix=dict(img_path=images, seg_map_path=labels),
            ann_file=ann_file,
            **kwargs)
        if request.param == 'mmssl.SplitSegDataset':
            cfg = dict(img_suffix=img_suffix, seg_map_suffix=seg_suffix, **cfg)
        return DATASETS.build(cfg)

    build.root, build.images, build.labels = tmp_path, images, labels
    build.img_suffix, build.seg_suffix = img_suffix, seg_suffix
    return build


@pytest.mark.parametrize('form', [
    '{stem}', '{stem}{i}', '{images}/{stem}{i}\t{labels}/{stem}{s}', '{images}/{stem}{i} {labels}/{stem}{s}',
    '{stem}{i} {stem}{s}'
])
def test_every_format_loads(layout, form):
    values = dict(images=layout.images, labels=layout.labels, i=layout.img_suffix, s=layout.seg_suffix)
    lines = ['# seed: 0', *(form.format(stem=stem, **values) for stem in STEMS[::-1])]
    (layout.root / 'list.txt').write_text('\n'.join(lines))
    check(layout, layout('list.txt'), STEMS[::-1])


def test_folder_loads(layout):
    check(layout, layout(), STEMS)


def check(layout, data, stems):
    for number, stem in enumerate(stems):
        info = data.get_data_info(number)
        assert info['img_path'] == os.path.join(layout.root, layout.images, stem + layout.img_suffix)
        assert info['seg_map_path'] == os.path.join(layout.root, layout.labels, stem + layout.seg_suffix)
        assert info['seg_fields'] == [] and info['label_map'] is None and info['reduce_zero_label'] is False
    assert len(data) == len(stems)


def test_missing_images_are_named(layout):
    (layout.root / 'list.txt').write_text('\n'.join([*STEMS, 'p', 'q', 'r', 't']))
    with pytest.raises(FileNotFoundError, match=r'of the 7 images .*4 \(first: p, q, r\) .*`data_prefix\.img_path`'):
        layout('list.txt')


def test_missing_labels_are_named(layout):
    os.remove(layout.root / layout.labels / (STEMS[1] + layout.seg_suffix))
    with pytest.raises(FileNotFoundError, match=r'label maps are missing: 1 .*x_2.*`data_prefix\.seg_map_path`'):
        layout()


def test_missing_list_and_folder(layout):
    with pytest.raises(FileNotFoundError, match=r'`ann_file`: there is no list .*nowhere\.txt'):
        layout('nowhere.txt')
    with pytest.raises(FileNotFoundError, match=r'`data_prefix\.img_path`=.*nowhere.* is not a folder'):
        SplitSegDataset(data_root=str(layout.root), data_prefix=dict(img_path='nowhere', seg_map_path='x'))
    with pytest.raises(ValueError, match=r'holds no image with `img_suffix`'):
        SplitSegDataset(
            data_root=str(layout.root), data_prefix=dict(img_path=layout.images, seg_map_path='x'), img_suffix='.bmp')


def test_double_entries_are_refused(layout):
    (layout.root / 'list.txt').write_text('\n'.join([*STEMS, STEMS[0]]))
    with pytest.raises(ValueError, match='twice, in lines 1 and 4'):
        layout('list.txt')


def test_without_labels(layout):
    data = SplitSegDataset(
        data_root=str(layout.root), data_prefix=dict(img_path=layout.images), img_suffix=layout.img_suffix)
    assert len(data) == 3 and 'seg_map_path' not in data.get_data_info(0)


def test_meta_information():
    assert VOCDataset.METAINFO == PascalVOCDataset.METAINFO
    assert CityscapesDataset.METAINFO == MMSegCityscapes.METAINFO
    assert len(CamVidDataset.METAINFO['classes']) == len(CamVidDataset.METAINFO['palette']) == 11
    assert CamVidDataset.METAINFO['classes'][0] == 'sky' and CamVidDataset.METAINFO['classes'][-1] == 'bicyclist'


def test_custom_classes_map_labels(layout):
    data = SplitSegDataset(
        data_root=str(layout.root),
        data_prefix=dict(img_path=layout.images, seg_map_path=layout.labels),
        img_suffix=[layout.img_suffix, '.other'],
        seg_map_suffix=layout.seg_suffix,
        metainfo=dict(classes=['a', 'b'], palette=[[0, 0, 0], [1, 1, 1]]))
    assert data.metainfo['classes'] == ['a', 'b'] and len(data) == 3
    part = CamVidDataset.get_label_map(['road', 'sky'])
    assert part[0] == 1 and part[3] == 0 and part[1] == 255


def test_real_camvid(shared_data):
    root = shared_data / 'camvid'
    sizes = {
        split: len(
            CamVidDataset(
                data_root=str(root),
                data_prefix=dict(img_path=f'img_dir/{split}', seg_map_path=f'ann_dir/{split}')))
        for split in ('train', 'val', 'test')
    }
    assert sizes == {'train': 367, 'val': 101, 'test': 233}
