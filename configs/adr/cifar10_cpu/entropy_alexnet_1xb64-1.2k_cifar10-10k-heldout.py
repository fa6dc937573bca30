# Entropy penalty, AlexNet, 10,000 images of CIFAR-10, at CPU size;
# evaluated on training images that are held out, to choose settings.
_base_ = './entropy_alexnet_1xb64-1.2k_cifar10-10k.py'
val_dataloader = dict(dataset=dict(_delete_=True, **_base_.held_out_set))
test_dataloader = val_dataloader
