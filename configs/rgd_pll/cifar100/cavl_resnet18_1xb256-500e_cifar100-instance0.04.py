# CAVL on CIFAR-100 with instance-dependent candidate sets (rate 0.04).
_base_ = './cavl_resnet18_1xb256-500e_cifar100-uniform0.01.py'
candidate_file = _base_.candidate_root + '/instance0.04_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
