# CC on Fashion-MNIST with uniform candidate sets (q = 0.1).
_base_ = [
    '../../_base_/models/resnet18_32.py',
    '../../_base_/datasets/fashion_mnist_partial.py',
    '../../_base_/methods/cc.py',
    '../../_base_/schedules/partial_500e.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True, type='mmssl.PartialLabelClassifier', classifier=classifier, **_base_.cc)
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(dataset=dict(pipeline=_base_.weak_view)))))
param_scheduler = [dict(_base_.param_scheduler[0], T_max=117500, end=117500)]
train_cfg = dict(max_iters=117500, val_interval=2350)
default_hooks = dict(checkpoint=dict(interval=2350))
