# CosFace, ResNet-18, CASIA-WebFace; evaluated on six benchmarks of pairs.
_base_ = './ce_resnet18_1xb512-32k_casia.py'
model = dict(head=dict(type='mmssl.CosFaceClsHead', scale=64., margins=0.35))
