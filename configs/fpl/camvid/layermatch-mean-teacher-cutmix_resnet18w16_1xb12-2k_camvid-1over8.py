# Mean teacher + CutMix + LayerMatch on CamVid 1/8, at CPU size.
_base_ = ['./mean-teacher-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py', '../../_base_/methods/layermatch.py']
# As published, a snapshot every hundredth of the training, and equal weights of the two unsupervised losses.
custom_hooks = [
    dict(_base_.grad_relu_hook, layers=['decode_head.conv_seg']),
    dict(_base_.ema_head_hook, layer='decode_head.conv_seg', reset_interval=20, loss_weight=0.3),
    *_base_.custom_hooks,
]
