# PRODEN on MNIST with uniform candidate sets (q = 0.7), at CPU size.
_base_ = './proden_wrn10-2_cpu-500_mnist-uniform0.3.py'
candidate_file = _base_.candidate_root + '/uniform0.7_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
val_cfg = dict(held_out_dataloader=dict(dataset=dict(candidate_file=candidate_file)))
