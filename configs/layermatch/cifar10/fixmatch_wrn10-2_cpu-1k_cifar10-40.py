# FixMatch on CIFAR-10 with 40 labels, at CPU size.
_base_ = [
    '../../_base_/models/wrn10_2_cpu.py',
    '../../_base_/datasets/cifar10_images_semi.py',
    '../../_base_/methods/fixmatch.py',
    '../../_base_/schedules/cpu_1k_cls.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True, type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=_base_.fixmatch)
train_dataloader = dict(
    num_workers=1, batch_size=64, sampler=dict(source_ratio=[1, 7]),
    dataset=dict(sources=dict(labeled=dict(per_class=4))))
val_dataloader = dict(num_workers=1)
test_dataloader = dict(num_workers=1)
custom_hooks = [dict(type='mmssl.PseudoLabelDiagnosticsHook', interval=50)]
auto_scale_lr = dict(base_batch_size=64)
