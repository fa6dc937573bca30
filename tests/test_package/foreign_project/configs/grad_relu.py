# A layer that learns from the labels alone, in a method of the project's own, whose other loss is called `unsup_loss`.
_base_ = './own_method.py'
custom_hooks = [dict(type='mmssl.GradReLUHook', layers=['decode_head.conv_seg'])]
