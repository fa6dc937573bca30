"""CPS, mean teacher, AEL and UniMatch, with and without FPL, on real street scenes at CPU size."""

title = 'CamVid, 46 of 367 training images labeled (1/8), mIoU on the 101 validation images'
rows = [
    dict(
        name='supervised',
        title='Supervised',
        config='configs/fpl/camvid/supervised_resnet18w16_1xb4-2k_camvid-1over8.py'),
    dict(name='cps', title='CPS', config='configs/fpl/camvid/cps_resnet18w16_1xb12-2k_camvid-1over8.py'),
    dict(
        name='cps-cutmix',
        title='CPS + CutMix',
        config='configs/fpl/camvid/cps-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'),
    dict(
        name='fpl-cps-cutmix',
        title='CPS + CutMix + FPL',
        config='configs/fpl/camvid/fpl-cps-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'),
    dict(
        name='mean-teacher-cutmix',
        title='Mean teacher + CutMix',
        config='configs/fpl/camvid/mean-teacher-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'),
    dict(
        name='fpl-mean-teacher-cutmix',
        title='Mean teacher + CutMix + FPL',
        config='configs/fpl/camvid/fpl-mean-teacher-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'),
    dict(
        name='ael',
        title='AEL',
        config='configs/fpl/camvid/ael_resnet18w16_1xb12-2k_camvid-1over8.py'),
    dict(
        name='fpl-ael',
        title='AEL + FPL',
        config='configs/fpl/camvid/fpl-ael_resnet18w16_1xb12-2k_camvid-1over8.py'),
    dict(
        name='unimatch',
        title='UniMatch',
        config='configs/fpl/camvid/unimatch_resnet18w16_1xb8-2k_camvid-1over8.py'),
    dict(
        name='fpl-unimatch',
        title='UniMatch + FPL',
        config='configs/fpl/camvid/fpl-unimatch_resnet18w16_1xb8-2k_camvid-1over8.py'),
]
seeds = [0, 1, 2]
metric = 'mIoU'
curves = ['unsup_mean_k', 'unsup_pseudo_acc']
data_root = dict(env='CAMVID_ROOT', default='data/camvid')
readme = 'configs/fpl/README.md'
plots = 'configs/fpl/camvid.png'
