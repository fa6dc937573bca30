# 120 epochs of 391 batches of 128, with steps after 40 and 80 (Wang et al., 2019).
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=5e-4))
param_scheduler = [
    dict(type='MultiStepLR', by_epoch=False, milestones=[15640, 31280], gamma=0.1, begin=0, end=46920)
]
train_cfg = dict(max_iters=46920, val_interval=3910)
default_hooks = dict(checkpoint=dict(interval=3910))
auto_scale_lr = dict(enable=False, base_batch_size=128)
