# CPS + FPL of `make demo`.
_base_ = ['./cps_shapes.py', '../_base_/methods/fpl.py']
model = dict(semi_train_cfg=dict(unsup_loss=_base_.fpl_loss))
