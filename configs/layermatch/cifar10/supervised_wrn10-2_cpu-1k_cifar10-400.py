# Labels alone on CIFAR-10 with 400 labels, at CPU size.
_base_ = [
    '../../_base_/models/wrn10_2_cpu.py',
    '../../_base_/datasets/cifar10_images.py',
    '../../_base_/schedules/cpu_1k_cls.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm)
train_dataloader = dict(num_workers=1, batch_size=8, dataset=dict(sources=dict(labeled=dict(per_class=40))))
val_dataloader = dict(num_workers=1)
test_dataloader = dict(num_workers=1)
auto_scale_lr = dict(base_batch_size=8)
