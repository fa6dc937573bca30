# CIFAR-10 as image files, with a set of candidate labels for each training image, in a weak and a strong view, for
# trainings of minutes on a CPU. The sets are in files of tools/datasets/make_candidates.py, one for each seed.
_base_ = './cifar10_images.py'
candidate_root = '{{$CIFAR10_IMAGES_CANDIDATES:data/cifar10/candidates_images}}'
weak = _base_.weak
# RandAugment would take most of the time.
strong = [*weak, _base_.strong[-1]]
two_views = [
    *_base_.load,
    dict(
        type='mmssl.MultiBranch',
        branches=['unsup_weak', 'unsup_strong'],
        unsup_weak=[*weak, _base_.pack],
        unsup_strong=[*strong, _base_.pack]),
]
# For methods that look at the weak view alone.
weak_view = [
    *_base_.load, dict(type='mmssl.MultiBranch', branches=['unsup_weak'], unsup_weak=[*weak, _base_.pack])
]
# 10,000 images, so that each is seen some times in a short training.
part_of = dict(type='mmssl.LabeledSubset', per_class=1000, seed=0)
# A part of them is held out, to choose a checkpoint by its candidate sets.
candidates = dict(
    type='mmssl.PartialLabelDataset',
    candidate_file=candidate_root + '/uniform0.3_seed{seed}.txt',
    held_out=0.1,
    seed=0)
train_dataloader = dict(
    batch_size=64,
    num_workers=1,
    dataset=dict(
        sources=dict(
            labeled=dict(
                _delete_=True,
                **candidates,
                dataset=dict(**part_of, dataset=dict(_base_.train_set, pipeline=two_views))))))
val_dataloader = dict(num_workers=1)
test_dataloader = dict(num_workers=1)
# For val_cfg: the test images, and what is held out beside them.
held_out_validation = dict(
    type='mmssl.HeldOutValLoop',
    held_out_dataloader=dict(
        batch_size=256,
        num_workers=1,
        persistent_workers=True,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(
            **candidates,
            part='held_out',
            dataset=dict(**part_of, dataset=dict(_base_.train_set, pipeline=[*_base_.load, _base_.pack])))),
    held_out_evaluator=dict(type='mmssl.CoveringRate'))
