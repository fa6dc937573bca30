# CC on CIFAR-100 with uniform candidate sets (q = 0.01).
_base_ = [
    '../../_base_/models/resnet18_32.py',
    '../../_base_/datasets/cifar100_partial.py',
    '../../_base_/methods/cc.py',
    '../../_base_/schedules/partial_500e.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm, head=dict(_base_.model.head, num_classes=100))
model = dict(
    _delete_=True, type='mmssl.PartialLabelClassifier', classifier=classifier, **_base_.cc)
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(dataset=dict(pipeline=_base_.weak_view)))))
optim_wrapper = dict(optimizer=dict(lr=0.1))
