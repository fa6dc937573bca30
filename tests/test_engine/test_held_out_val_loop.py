"""Validation of a second data set through a real runner: its metrics choose the checkpoint, its samples are apart."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, METRICS, MODELS, TRANSFORMS
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement

from mmssl.engine.loops import HeldOutValLoop

LABELS = [index % 3 for index in range(40)]


@DATASETS.register_module(force=True)
class FortyOfThree(BaseDataset):
    """Forty samples of three classes."""

    METAINFO: ClassVar = dict(classes=['a', 'b', 'c'])

    def load_data_list(self) -> list[dict]:
        return [dict(gt_label=label) for label in LABELS]


@TRANSFORMS.register_module(force=True)
class PackNumber:
    """Inputs are the sample's number."""

    def __call__(self, info: dict) -> dict:
        sample = BaseDataElement(metainfo=dict(sample_idx=info['sample_idx']))
        if 'gt_label' in info:
            sample.gt_label = torch.tensor([info['gt_label']])
        return dict(inputs=torch.tensor([float(info['sample_idx'])]), data_samples=sample)


@MODELS.register_module(force=True)
class SaysB(BaseModel):
    """Trained or not, it takes everything for the second class."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, inputs: Any, data_samples: list | None = None, mode: str = 'tensor') -> Any:
        if mode == 'loss':
            return dict(loss=self.weight.sum())
        for sample in data_samples:
            sample.pred_score = torch.tensor([0.2, 0.5, 0.3])
        return data_samples


@METRICS.register_module(force=True)
class ShareOfB(BaseMetric):
    """Accuracy of saying b."""

    def process(self, data_batch: Any, data_samples: list[dict]) -> None:
        self.results += [float(sample['gt_label'] == sample['pred_score'].argmax()) for sample in data_samples]

    def compute_metrics(self, results: list[float]) -> dict[str, float]:
        return dict(accuracy=sum(results) / len(results))


def config_of(folder: Path, **held_out: Any) -> Config:
    path = folder / 'sets_seed0.txt'
    path.write_text(''.join(f'{label} {(label + 1) % 3}\n' for label in LABELS))
    plain = dict(type='FortyOfThree', pipeline=[dict(type='PackNumber')])
    partial = dict(type='mmssl.PartialLabelDataset', candidate_file=str(folder / 'sets_seed{seed}.txt'), dataset=plain)
    loader = dict(batch_size=4, num_workers=0)
    sampler = dict(type='DefaultSampler', shuffle=False)
    return Config(dict(
        custom_imports=dict(imports=['mmssl']), work_dir=str(folder / 'run'), model=dict(type='SaysB'),
        train_dataloader=dict(
            **loader, sampler=dict(type='InfiniteSampler'), dataset=dict(**partial, held_out=0.25)),
        val_dataloader=dict(**loader, sampler=sampler, dataset=plain), val_evaluator=dict(type='ShareOfB'),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=2, val_interval=1),
        val_cfg=dict(
            type='mmssl.HeldOutValLoop',
            held_out_dataloader=dict(
                **loader, sampler=sampler, dataset=dict(partial, **{'held_out': 0.25, 'part': 'held_out', **held_out})),
            held_out_evaluator=dict(type='mmssl.CoveringRate')),
        optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1)),
        default_hooks=dict(checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=1, rule='greater',
                                           save_best='candidates/covering_rate')),
        log_processor=dict(by_epoch=False), default_scope='mmengine'))  # fmt: skip


def test_both_data_sets_are_one_validation(tmp_path: Path) -> None:
    runner = Runner.from_cfg(config_of(tmp_path))
    runner.train()
    assert isinstance(runner.val_loop, HeldOutValLoop)
    part = runner.val_loop.held_out_dataloader.dataset
    assert len(part) == 10 and not set(part.indices) & set(runner.train_dataloader.dataset.indices)
    logged = [json.loads(line) for path in (tmp_path / 'run').glob('*/vis_data/scalars.json')
              for line in path.read_text().splitlines()]
    validations = [line for line in logged if 'accuracy' in line]
    assert len(validations) == 2 and validations[0]['accuracy'] == pytest.approx(LABELS.count(1) / 40)
    labels = [LABELS[index] for index in part.indices]
    # The sets of a and of b have b.
    assert validations[0]['candidates/covering_rate'] == pytest.approx(100 * (1 - labels.count(2) / 10))
    assert validations[0]['candidates/true_accuracy'] == pytest.approx(100 * labels.count(1) / 10)
    assert list((tmp_path / 'run').glob('best_candidates_covering_rate_iter_1.pth'))


@pytest.mark.parametrize('held_out', [dict(part='train'), dict(held_out=0.5)])
def test_what_is_trained_on_is_not_held_out(tmp_path: Path, held_out: dict) -> None:
    with pytest.raises(ValueError, match=r'held_out_dataloader: \d+ of \d+ samples are trained on as well'):
        Runner.from_cfg(config_of(tmp_path, **held_out)).train()


def test_metrics_of_one_name_are_refused(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    config.val_dataloader.dataset = config.val_cfg.held_out_dataloader.dataset
    config.val_evaluator = dict(type='mmssl.CoveringRate')
    with pytest.raises(ValueError, match=r"val_evaluator has the metrics \['candidates/accuracy_estimate'"):
        Runner.from_cfg(config).train()
