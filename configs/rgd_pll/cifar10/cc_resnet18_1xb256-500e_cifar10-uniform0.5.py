# CC on CIFAR-10 with uniform candidate sets (q = 0.5).
_base_ = './cc_resnet18_1xb256-500e_cifar10-uniform0.1.py'
candidate_file = _base_.candidate_root + '/uniform0.5_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
