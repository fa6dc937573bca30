# Cross entropy, ResNet-18, CASIA-WebFace; evaluated on six benchmarks of pairs.
_base_ = [
    '../../_base_/models/resnet18_faces.py', '../../_base_/datasets/casia_faces.py',
    '../../_base_/schedules/faces_32k.py', '../../_base_/default_runtime_cls.py'
]
