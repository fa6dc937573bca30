# AEL on Cityscapes as released: every pseudo label is used, and nothing is pasted of the classes that fill most images.
_base_ = './ael_deeplabv3plus_r50.py'
data_preprocessor = dict(size=(769, 769))
model = dict(
    data_preprocessor=dict(data_preprocessor=data_preprocessor),
    segmentor=dict(
        data_preprocessor=data_preprocessor,
        decode_head=dict(num_classes=19),
        auxiliary_head=dict(num_classes=19),
        test_cfg=dict(_delete_=True, mode='slide', crop_size=(769, 769), stride=(513, 513))),
    semi_train_cfg=dict(
        unsup_loss=dict(threshold=0.0),
        mix=dict(component_thresh=0.005, presence_thresh=0.01),
        copy_paste=dict(num_draws=3, exclude_classes=['road', 'sidewalk', 'building', 'vegetation', 'sky'])))
