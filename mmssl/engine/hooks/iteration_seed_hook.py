"""Random numbers of the model (dropout, ...) as a function of the iteration, so that a resumed run draws the same."""

import random
from typing import Any

import numpy as np
import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.registry import HOOKS
from mmssl.utils.model import unwrap_model

# Keeps these numbers apart from other streams that are seeded from the same seed.
STREAM = 0x17E2


@HOOKS.register_module()
class IterationSeedHook(Hook):
    """Seeds python, numpy and torch before every training iteration, from (``randomness.seed``, rank, iteration).

    A checkpoint holds no random state, so after a resume dropout would draw other numbers than the uninterrupted run.
    With this hook they depend on the iteration alone, also if validations come in between. ``tools/train.py`` adds it
    by itself. A semi-supervised model in a run that begins counts from 0, also where ``load_from`` brought the count of
    another run. The samples of ``mmssl.MultiSourceDataset`` have random numbers of their own and do not need it.
    """

    priority = 'VERY_HIGH'

    def before_train(self, runner: Runner) -> None:
        """Let a new run that has loaded a semi-supervised checkpoint count its own iterations (``unsup_begin``)."""
        model = unwrap_model(runner.model)
        if runner.iter == 0 and hasattr(model, 'restart_count'):
            model.restart_count()

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        """Seed."""
        words = np.random.SeedSequence((STREAM, runner.seed, get_rank(), runner.iter)).generate_state(3)
        random.seed(int(words[0]))
        np.random.seed(words[1])
        torch.manual_seed(int(words[2]))
