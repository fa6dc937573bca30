# 400 labeled images alone, on a CPU: what semi-supervised learning has to improve on.
_base_ = [
    '../../_base_/models/wrn10_2_cpu.py',
    '../../_base_/datasets/cifar10_images.py',
    '../../_base_/schedules/cpu_1k_cls.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm)
train_dataloader = dict(num_workers=1, dataset=dict(sources=dict(labeled=dict(per_class=40))))
val_dataloader = dict(num_workers=1)
test_dataloader = dict(num_workers=1)
