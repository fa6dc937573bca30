# PRODEN on CIFAR-10 with instance-dependent candidate sets (rate 0.4), at CPU size.
_base_ = './proden_wrn10-2_cpu-800_cifar10-uniform0.3.py'
candidate_file = _base_.candidate_root + '/instance0.4_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
val_cfg = dict(held_out_dataloader=dict(dataset=dict(candidate_file=candidate_file)))
