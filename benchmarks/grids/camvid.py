"""FPL on CPS on real street scenes, at CPU size: the proof of the table in ``configs/fpl/README.md``."""

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
]
seeds = [0, 1, 2]
metric = 'mIoU'
curves = ['unsup_mean_k', 'unsup_pseudo_acc']
data_root = dict(env='CAMVID_ROOT', default='data/camvid')
readme = 'configs/fpl/README.md'
plots = 'configs/fpl/camvid.png'
