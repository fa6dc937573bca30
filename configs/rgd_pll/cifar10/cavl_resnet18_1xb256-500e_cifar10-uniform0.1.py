# CAVL on CIFAR-10 with uniform candidate sets (q = 0.1).
_base_ = [
    '../../_base_/models/resnet18_32.py',
    '../../_base_/datasets/cifar10_partial.py',
    '../../_base_/methods/cavl.py',
    '../../_base_/schedules/partial_500e.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True, type='mmssl.PartialLabelClassifier', classifier=classifier, **_base_.cavl)
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(dataset=dict(pipeline=_base_.weak_view)))))
custom_hooks = [_base_.cavl_hook]
