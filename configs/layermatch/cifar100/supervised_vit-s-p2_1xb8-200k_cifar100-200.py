# Labels alone on CIFAR-100 with 200 labels.
_base_ = [
    '../../_base_/models/vit_s_p2_32.py',
    '../../_base_/datasets/cifar100.py',
    '../../_base_/schedules/cosine_7_16_vit.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(data_preprocessor=_base_.image_norm)
train_dataloader = dict(batch_size=8, dataset=dict(sources=dict(labeled=dict(per_class=2))))
auto_scale_lr = dict(base_batch_size=8)
