# Runtime of what needs neither mmseg nor mmpretrain.
default_scope = 'mmengine'
custom_imports = dict(imports=['mmssl'], allow_failed_imports=False)
env_cfg = dict(
    cudnn_benchmark=False,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'))
log_processor = dict(by_epoch=False)
log_level = 'INFO'
load_from = None
resume = False
randomness = dict(seed=0)
