# PRODEN on CIFAR-10 with instance-dependent candidate sets (rate 0.4).
_base_ = './proden_resnet18_1xb256-500e_cifar10-uniform0.1.py'
candidate_file = _base_.candidate_root + '/instance0.4_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
