# FixMatch on STL-10 with 100 labels.
_base_ = [
    '../../_base_/models/vit_b_p16_96.py',
    '../../_base_/datasets/stl10_semi.py',
    '../../_base_/methods/fixmatch.py',
    '../../_base_/schedules/cosine_7_16_vit.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True, type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=_base_.fixmatch)
train_dataloader = dict(
    batch_size=16, sampler=dict(source_ratio=[1, 1]),
    dataset=dict(sources=dict(labeled=dict(per_class=10))))
optim_wrapper = dict(optimizer=dict(lr=1e-4), paramwise_cfg=dict(layer_decay_rate=0.95))
auto_scale_lr = dict(base_batch_size=16)
