# CAVL on Fashion-MNIST with uniform candidate sets (q = 0.3).
_base_ = './cavl_resnet18_1xb256-500e_fashion_mnist-uniform0.1.py'
candidate_file = _base_.candidate_root + '/uniform0.3_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
