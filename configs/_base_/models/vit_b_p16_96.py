# ViT-B with patches of 16 x 16 for the 96 x 96 pixels of STL-10. Positions of pre-trained weights for another size are
# resized, bicubically.
_base_ = './vit_t_p2_32.py'
model = dict(
    data_preprocessor=dict(mean=[112.4, 109.1, 98.6], std=[68.4, 66.6, 68.5]),
    backbone=dict(arch='deit-base', img_size=96, patch_size=16, drop_path_rate=0.2, interpolate_mode='bicubic'),
    head=dict(in_channels=768))
