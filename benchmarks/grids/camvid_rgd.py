"""FPL in a mean teacher, with and without gradient surgery between labels and pseudo labels, on real street scenes."""

_NAME = 'mean-teacher-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'

title = 'CamVid, 46 of 367 training images labeled (1/8), mIoU on the 101 validation images'
rows = [
    dict(
        name='fpl-mean-teacher-cutmix',
        title='Mean teacher + CutMix + FPL',
        config=f'configs/fpl/camvid/fpl-{_NAME}'),
    dict(
        name='rgd-fpl-mean-teacher-cutmix',
        title='the same with gradient surgery',
        config=f'configs/rgd_pll/camvid/rgd-fpl-{_NAME}'),
]
seeds = [0, 1, 2]
metric = 'mIoU'
curves = ['unsup_pseudo_acc', 'surgery_conflict']
data_root = dict(env='CAMVID_ROOT', default='data/camvid')
readme = 'configs/rgd_pll/README.md'
plots = 'configs/rgd_pll/camvid.png'
