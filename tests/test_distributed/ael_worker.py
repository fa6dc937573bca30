"""Started by torchrun: AEL's gradients and banks, with the whole batch spread over the ranks."""

import sys

import torch
from gradients_worker import SIZE, UNITS, segmentor, unit
from mmengine.dist import get_dist_info
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch.nn.parallel import DistributedDataParallel

STEPS = 3
PARTS = dict(
    mix=dict(type='mmssl.AdaptiveCutMix', component_thresh=0.01, presence_thresh=0.1, seed=7),
    copy_paste=dict(type='mmssl.AdaptiveCopyPaste', seed=7),
    sampling=dict(type='mmssl.EqualizationSampling', seed=7),
)
RELEASED_FPL = dict(type='mmssl.FPLLoss', max_k=3, weight_bound='top_k_plus_1', balance='ce_value')
CASES = {
    'ael': dict(PARTS, unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.3)),
    'ael_released_fpl': dict(PARTS, unsup_loss=RELEASED_FPL),
    'ael_without_padding': dict(PARTS, ignore_padding=True),
    # The first of the steps is before the unsupervised loss starts.
    'ael_begins_later': dict(PARTS, unsup_begin=1),
}


class Source:
    """Donors that depend on their number alone."""

    key = 'fake'

    def __init__(self, branch: str, size: int) -> None:
        self.branch, self.size = branch, size

    def __len__(self) -> int:
        return self.size

    def fingerprint(self) -> int:
        return self.size

    def load(self, index: int, seed: int, step: int, place: int) -> dict:
        generator = torch.Generator().manual_seed(1000 * place + 10 * index + step)
        sample = SegDataSample(metainfo=dict(img_shape=SIZE, padding_size=(0, 0, 0, 0), sample_idx=index))
        if self.branch == 'sup':
            sample.gt_sem_seg = PixelData(data=torch.randint(0, 4, (1, *SIZE), generator=generator))
        image = torch.randint(0, 256, (3, *SIZE), generator=generator, dtype=torch.uint8)
        return dict(inputs={self.branch: image}, data_samples={self.branch: sample})


def main(out: str) -> None:
    torch.distributed.init_process_group('gloo')  # mmengine's init_dist wants a GPU
    rank, world_size = get_dist_info()
    torch.set_num_threads(1)
    init_default_scope('mmseg')
    parts = []
    for index in range(rank, UNITS, world_size):
        part = unit(index)
        for place, sample in enumerate(part[1]['unsup_weak']):
            sample.set_metainfo(dict(sample_idx=2 * index + place))
        parts.append(part)
    inputs = {name: torch.cat([part[0][name] for part in parts]) for name in ('sup', 'unsup_weak')}
    samples = {name: [item for part in parts for item in part[1][name]] for name in ('sup', 'unsup_weak')}
    preprocessor = dict(type='SegDataPreProcessor', mean=[127.5] * 3, std=[60.0] * 3, size=SIZE, seg_pad_val=255)
    saved = {}
    for name, options in CASES.items():
        torch.manual_seed(0)
        config = dict(segmentor(), data_preprocessor=preprocessor)
        model = MODELS.build(dict(type='mmssl.AELSegmentor', segmentor=config, semi_train_cfg=options))
        # Sharper logits, so that labels, K and thresholds differ between pixels.
        for head in (module for key, module in model.named_modules() if key.endswith('conv_seg')):
            torch.nn.init.normal_(head.weight, std=2.0)
        model.initialize_teacher()
        model.attach_sources(Source('sup', 9), Source('unsup_weak', 12), None, labeled_per_unit=1)
        wrapped = DistributedDataParallel(model.train(), find_unused_parameters=False)
        for step in range(STEPS):
            model.zero_grad()
            loss, _ = model.parse_losses(wrapped(inputs, samples, mode='loss'))
            loss.backward()
            with torch.no_grad():  # the same step on every rank, large enough to move labels
                for p in model.student.parameters():
                    p -= 0.05 * p.grad
            model.update_teacher(0.5, 'copy')
            saved[f'{name}.{step}.gradient'] = {
                key: p.grad.clone() for key, p in model.named_parameters() if p.requires_grad
            }
            saved[f'{name}.{step}.bank'] = {
                key: value.clone() for key, value in model.named_buffers()
                if key.startswith(('confidence_bank', 'presence_bank', 'mix', 'sampling', 'copy_paste'))
            }  # fmt: skip
    torch.save(saved, f'{out}.{rank}')
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main(sys.argv[1])
