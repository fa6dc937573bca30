_base_ = './mean_teacher_resnet18_w16.py'
model = dict(type='mmssl.AELSegmentor')
