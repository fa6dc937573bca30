# 300 epochs of 449 batches of 64, each with a validation; the learning rate falls by a quarter whenever the accuracy
# has not risen for five epochs.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=1e-4, nesterov=True))
param_scheduler = [
    dict(type='ReduceOnPlateauLR', monitor='accuracy/top1', rule='greater', factor=0.75, patience=5, by_epoch=True)
]
train_cfg = dict(max_iters=134700, val_interval=449)
default_hooks = dict(checkpoint=dict(interval=449))
auto_scale_lr = dict(enable=False, base_batch_size=64)
