"""ADR beside cross entropy and label smoothing, on clean and on noisy labels of real images, at CPU size."""

_FOLDER = 'configs/adr/cifar10_cpu'
_NAME = 'alexnet_1xb64-1.2k_cifar10-10k'

title = 'CIFAR-10, AlexNet, 10,000 training images, accuracy (%) and calibration error on the 10,000 test images'
rows = [
    dict(name='ce', title='CE', config=f'{_FOLDER}/ce_{_NAME}.py'),
    dict(name='entropy', title='CE + entropy', config=f'{_FOLDER}/entropy_{_NAME}.py'),
    dict(name='adr-ce', title='CE + ADR', config=f'{_FOLDER}/adr-ce_{_NAME}.py'),
    dict(name='ls', title='LS', config=f'{_FOLDER}/ls_{_NAME}.py'),
    dict(name='adr-ls', title='LS + ADR', config=f'{_FOLDER}/adr-ls_{_NAME}.py'),
    dict(name='ce-sym20', title='CE, 20 % noise', config=f'{_FOLDER}/ce_{_NAME}-sym20.py'),
    dict(name='adr-ce-sym20', title='CE + ADR, 20 % noise', config=f'{_FOLDER}/adr-ce_{_NAME}-sym20.py'),
    dict(name='ce-sym40', title='CE, 40 % noise', config=f'{_FOLDER}/ce_{_NAME}-sym40.py'),
    dict(name='adr-ce-sym40', title='CE + ADR, 40 % noise', config=f'{_FOLDER}/adr-ce_{_NAME}-sym40.py'),
]
seeds = [0, 1, 2]
metric = 'accuracy/top1'
extra_metrics = ['calibration/ECE']
curves = ['loss']
data_root = dict(env='CIFAR10_ROOT', default='data/cifar10')
readme = 'configs/adr/README.md'
plots = 'configs/adr/cifar10.png'
