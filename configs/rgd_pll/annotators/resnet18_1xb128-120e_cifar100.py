# The annotator of instance-dependent candidate sets for CIFAR-100: it learns from all labels.
_base_ = [
    '../../_base_/models/resnet18_32.py',
    '../../_base_/datasets/cifar100.py',
    '../../_base_/schedules/cifar10_120e.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm, head=dict(num_classes=100))
labeled = dict(_base_.train_set, _delete_=True, pipeline=[*_base_.load, *_base_.weak, _base_.pack])
train_dataloader = dict(batch_size=128, dataset=dict(sources=dict(labeled=labeled)))
