# FixMatch on CIFAR-100 with 10,000 labels.
_base_ = [
    '../../_base_/models/wrn28_8.py',
    '../../_base_/datasets/cifar100_semi.py',
    '../../_base_/methods/fixmatch.py',
    '../../_base_/schedules/cosine_7_16.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True, type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=_base_.fixmatch)
train_dataloader = dict(
    batch_size=512, sampler=dict(source_ratio=[1, 7]),
    dataset=dict(sources=dict(labeled=dict(per_class=100))))
optim_wrapper = dict(optimizer=dict(weight_decay=1e-3))
custom_hooks = [dict(type='EMAHook', momentum=0.001)]
auto_scale_lr = dict(base_batch_size=512)
