# AEL's optimizer: SGD, decay on all weights, both heads learn ten times as fast. An experiment sets the number of
# iterations.
_base_ = './cps_40k.py'
optim_wrapper = dict(
    optimizer=dict(lr=0.01),
    paramwise_cfg=dict(
        _delete_=True, custom_keys={'decode_head': dict(lr_mult=10.), 'auxiliary_head': dict(lr_mult=10.)}))
auto_scale_lr = dict(base_batch_size=32)
