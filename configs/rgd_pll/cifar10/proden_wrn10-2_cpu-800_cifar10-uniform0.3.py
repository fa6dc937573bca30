# PRODEN on CIFAR-10 with uniform candidate sets (q = 0.3), at CPU size.
_base_ = [
    '../../_base_/models/wrn10_2_cpu.py',
    '../../_base_/datasets/cifar10_images_partial.py',
    '../../_base_/methods/proden.py',
    '../../_base_/schedules/partial_cpu_800.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True, type='mmssl.PartialLabelClassifier', classifier=classifier, **_base_.proden)
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(dataset=dict(dataset=dict(pipeline=_base_.weak_view))))))
custom_hooks = [_base_.proden_hook]
val_cfg = _base_.held_out_validation
log_processor = dict(window_size=25, mean_pattern='.*(loss|time|target_acc|estimator_acc).*')
