# LayerMatch: two hooks on any semi-supervised model, for its final layer: 'head.fc' of most classifiers, and of
# segmentors 'decode_head.conv_seg', as in `dict(_base_.grad_relu_hook, layers=['decode_head.conv_seg'])`. The constants
# are the published ones; momentum is 1 - 0.999, and 2048 a hundredth of the published 204,800 iterations.
grad_relu_hook = dict(type='mmssl.GradReLUHook', layers=['head.fc'])
ema_head_hook = dict(type='mmssl.EMAHeadHook', layer='head.fc', momentum=0.001, reset_interval=2048, lr=5e-4)
