# Mean teacher + CutMix + FPL on CamVid 1/8, the unsupervised loss as the auxiliary of gradient surgery, at CPU size.
_base_ = [
    '../../fpl/camvid/fpl-mean-teacher-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py', '../../_base_/methods/rgd.py'
]
optim_wrapper = dict(**_base_.rgd, shared=['student'])
