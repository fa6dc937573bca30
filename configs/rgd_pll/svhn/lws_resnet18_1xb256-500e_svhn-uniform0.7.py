# LWS on SVHN with uniform candidate sets (q = 0.7).
_base_ = './lws_resnet18_1xb256-500e_svhn-uniform0.1.py'
candidate_file = _base_.candidate_root + '/uniform0.7_seed{seed}.txt'
train_dataloader = dict(dataset=dict(sources=dict(labeled=dict(candidate_file=candidate_file))))
