"""Gamma and tau of ADR, and the weight of the entropy, chosen on training images that no row learns from.

The seed is none of the table's, and the test images are not looked at.
"""

_FOLDER = 'configs/adr/cifar10_cpu'
_NAME = 'alexnet_1xb64-1.2k_cifar10-10k-heldout'
_WEIGHT, _TOPK = 'model.head.loss.losses.1.loss_weight', 'model.head.loss.losses.1.topk'

title = 'CIFAR-10, AlexNet, 10,000 training images, accuracy (%) on 5,000 other training images'
rows = [dict(name='ce', title='CE', config=f'{_FOLDER}/ce_{_NAME}.py')]
rows += [
    dict(
        name=f'entropy-{weight}',
        title=f'CE + entropy, weight {weight}',
        config=f'{_FOLDER}/entropy_{_NAME}.py',
        cfg_options={_WEIGHT: weight}) for weight in (0.01, 0.05, 0.2)
]
rows += [
    dict(
        name=f'adr-t{topk}-g{weight}',
        title=f'CE + ADR, tau {topk}, gamma {weight}',
        config=f'{_FOLDER}/adr-ce_{_NAME}.py',
        cfg_options={_WEIGHT: weight, _TOPK: topk}) for topk in (1, 2, 3) for weight in (0.01, 0.05, 0.2)
]
seeds = [10]
metric = 'accuracy/top1'
extra_metrics = ['calibration/ECE']
data_root = dict(env='CIFAR10_ROOT', default='data/cifar10')
readme = 'configs/adr/README.md'
