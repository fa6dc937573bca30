# Label smoothing, VGG, FER2013.
_base_ = ['./ce_vgg_1xb64-300e_fer2013.py', '../../_base_/methods/label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.label_smoothing)))
