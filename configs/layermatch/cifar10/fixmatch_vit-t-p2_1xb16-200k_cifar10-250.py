# FixMatch on CIFAR-10 with 250 labels.
_base_ = [
    '../../_base_/models/vit_t_p2_32.py',
    '../../_base_/datasets/cifar10_semi.py',
    '../../_base_/methods/fixmatch.py',
    '../../_base_/schedules/cosine_7_16_vit.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True, type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=_base_.fixmatch)
train_dataloader = dict(
    batch_size=16, sampler=dict(source_ratio=[1, 1]),
    dataset=dict(sources=dict(labeled=dict(per_class=25))))
auto_scale_lr = dict(base_batch_size=16)
