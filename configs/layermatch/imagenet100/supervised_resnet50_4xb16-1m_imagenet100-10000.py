# Labels alone on ImageNet-100 with 10,000 labels.
_base_ = [
    '../../_base_/models/resnet50_cls.py',
    '../../_base_/datasets/imagenet100.py',
    '../../_base_/schedules/cosine_7_16.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm, head=dict(num_classes=100))
train_dataloader = dict(batch_size=16, dataset=dict(sources=dict(labeled=dict(per_class=100))))
optim_wrapper = dict(optimizer=dict(weight_decay=3e-4))
custom_hooks = [dict(type='EMAHook', momentum=0.001)]
auto_scale_lr = dict(base_batch_size=64)
