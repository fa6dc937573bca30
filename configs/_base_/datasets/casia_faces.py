# CASIA-WebFace for training, one folder for each person below `CASIA_ROOT`, aligned and cropped to 112 x 112, as is
# usual for ArcFace; six benchmarks of pairs for evaluation, each a folder below `FACE_PAIRS_ROOT` with images and
# `pairs.txt`.
_base_ = './cls_loaders.py'
train_root = '{{$CASIA_ROOT:data/casia_webface}}'
pairs_root = '{{$FACE_PAIRS_ROOT:data/face_pairs}}'
resize = dict(type='Resize', scale=(112, 112))
labeled = dict(
    type='CustomDataset',
    data_root=train_root,
    pipeline=[_base_.load_image, resize, dict(type='RandomFlip', prob=0.5, direction='horizontal'), _base_.pack])
train_dataloader = dict(batch_size=512, dataset=dict(sources=dict(labeled=labeled)))
pairs = dict(type='mmssl.FacePairsDataset', ann_file='pairs.txt', pipeline=[_base_.load_image, resize, _base_.pack])
val_dataloader = dict(
    dataset=dict(
        type='ConcatDataset',
        datasets=[
            dict(pairs, name='lfw', data_root=f'{pairs_root}/lfw'),
            dict(pairs, name='calfw', data_root=f'{pairs_root}/calfw'),
            dict(pairs, name='cplfw', data_root=f'{pairs_root}/cplfw'),
            dict(pairs, name='agedb_30', data_root=f'{pairs_root}/agedb_30'),
            dict(pairs, name='cfp_ff', data_root=f'{pairs_root}/cfp_ff'),
            dict(pairs, name='cfp_fp', data_root=f'{pairs_root}/cfp_fp'),
        ]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
val_evaluator = dict(_delete_=True, type='mmssl.FaceVerification')
test_evaluator = val_evaluator
