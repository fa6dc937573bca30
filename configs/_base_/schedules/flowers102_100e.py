# 100 epochs of 32 batches of 64, with steps after 45 and 80.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=1e-4))
param_scheduler = [
    dict(type='MultiStepLR', by_epoch=False, milestones=[1440, 2560], gamma=0.1, begin=0, end=3200)
]
train_cfg = dict(max_iters=3200, val_interval=320)
default_hooks = dict(checkpoint=dict(interval=320))
auto_scale_lr = dict(enable=False, base_batch_size=64)
