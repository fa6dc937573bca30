# Supervised baseline on 46 images of CamVid, at CPU size.
_base_ = [
    '../../_base_/models/resnet18_w16.py',
    '../../_base_/datasets/camvid.py',
    '../../_base_/schedules/cpu_2k.py',
    '../../_base_/default_runtime.py',
]
model = dict(decode_head=dict(loss_decode=_base_.weighted_cross_entropy))
