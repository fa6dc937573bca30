# CC on CIFAR-100 with uniform candidate sets (q = 0.1).
_base_ = './cc_resnet18_1xb256-500e_cifar100-uniform0.01.py'
candidate_file = _base_.candidate_root + '/uniform0.1_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
