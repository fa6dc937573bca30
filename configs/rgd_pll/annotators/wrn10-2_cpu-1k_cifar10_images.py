# The annotator of instance-dependent candidate sets for CIFAR-10 as image files, at CPU size: it learns from all
# labels.
_base_ = [
    '../../_base_/models/wrn10_2_cpu.py',
    '../../_base_/datasets/cifar10_images.py',
    '../../_base_/schedules/cpu_1k_cls.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm)
labeled = dict(_base_.train_set, _delete_=True, pipeline=[*_base_.load, *_base_.weak, _base_.pack])
train_dataloader = dict(batch_size=64, num_workers=1, dataset=dict(sources=dict(labeled=labeled)))
val_dataloader = dict(num_workers=1)
train_cfg = dict(val_interval=1000)
