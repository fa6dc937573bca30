# Labels alone on STL-10 with 1,000 labels.
_base_ = [
    '../../_base_/models/wrn37_2.py',
    '../../_base_/datasets/stl10.py',
    '../../_base_/schedules/cosine_7_16.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm)
train_dataloader = dict(batch_size=64, dataset=dict(sources=dict(labeled=dict(per_class=100))))
custom_hooks = [dict(type='EMAHook', momentum=0.001)]
auto_scale_lr = dict(base_batch_size=64)
