# A whole experiment of mmssl on the project's data, inherited by its name.
_base_ = __import__('mmssl').config_path('fpl/camvid/fpl-cps-cutmix_resnet18w16_1xb12-2k_camvid-1over8')
custom_imports = dict(imports=['mmssl', 'own_project'])
own = dict(data_root='data', type='OwnDataset')
model = dict(
    segmentor=dict(
        backbone=dict(stem_channels=4, base_channels=4),
        decode_head=dict(
            num_classes=4,
            in_channels=32,
            channels=8,
            c1_in_channels=4,
            c1_channels=4,
            loss_decode=dict(_delete_=True, type='CrossEntropyLoss', avg_non_ignore=True))),
    semi_train_cfg=dict(unsup_begin=0))
train_dataloader = dict(
    batch_size=6,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        sources=dict(
            labeled=dict(ann_file='splits/labeled.txt', **own),
            unlabeled=dict(data_root=own['data_root'], ann_file='splits/unlabeled.txt'))))
val_dataloader = dict(num_workers=0, persistent_workers=False, dataset=own)
test_dataloader = val_dataloader
train_cfg = dict(max_iters=2, val_interval=2)
default_hooks = dict(logger=dict(interval=1), checkpoint=dict(interval=2))
custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook', interval=1)]
