# Labels alone on CIFAR-100 with 10,000 labels.
_base_ = [
    '../../_base_/models/wrn28_8.py',
    '../../_base_/datasets/cifar100.py',
    '../../_base_/schedules/cosine_7_16.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm)
train_dataloader = dict(batch_size=64, dataset=dict(sources=dict(labeled=dict(per_class=100))))
optim_wrapper = dict(optimizer=dict(weight_decay=1e-3))
custom_hooks = [dict(type='EMAHook', momentum=0.001)]
auto_scale_lr = dict(base_batch_size=64)
