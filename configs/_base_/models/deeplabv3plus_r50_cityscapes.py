# 19 classes, crops of 800, and the hard-example cross entropy of CPS on Cityscapes: 50,000 pixels kept for each of the
# 2 labeled images of a GPU.
_base_ = './deeplabv3plus_r50.py'
data_preprocessor = dict(size=(800, 800))
model = dict(
    data_preprocessor=dict(size=(800, 800)),
    decode_head=dict(
        num_classes=19,
        loss_decode=dict(_delete_=True, type='mmssl.OHEMCrossEntropyLoss', thresh=0.7, min_kept=100000)),
    test_cfg=dict(crop_size=(800, 800), stride=(534, 534)))
