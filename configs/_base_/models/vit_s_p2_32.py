# ViT-S with patches of 2 x 2 for 32 x 32 pixels and 100 classes. (Papers call it ViT-S-P4-32; the released weights and
# code have patches of 2. For 4, set `model.backbone.patch_size=4`.)
_base_ = './vit_t_p2_32.py'
model = dict(
    data_preprocessor=dict(mean=[129.3, 124.1, 112.4], std=[68.2, 65.4, 70.4]),
    backbone=dict(arch='deit-small', drop_path_rate=0.2),
    head=dict(num_classes=100, in_channels=384))
