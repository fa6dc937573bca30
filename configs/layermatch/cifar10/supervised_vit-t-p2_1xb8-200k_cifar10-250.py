# Labels alone on CIFAR-10 with 250 labels.
_base_ = [
    '../../_base_/models/vit_t_p2_32.py',
    '../../_base_/datasets/cifar10.py',
    '../../_base_/schedules/cosine_7_16_vit.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm)
train_dataloader = dict(batch_size=8, dataset=dict(sources=dict(labeled=dict(per_class=25))))
auto_scale_lr = dict(base_batch_size=8)
