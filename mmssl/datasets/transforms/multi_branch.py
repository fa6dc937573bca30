"""One image, several named views: each goes to its own branch of the model."""

import copy
from collections.abc import Sequence
from typing import Any

from mmcv.transforms import BaseTransform
from mmengine.dataset import Compose

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class MultiBranch(BaseTransform):
    """Send copies of a sample through several pipelines and name the results.

    What comes before it is common to all views: with the geometric transforms there, weak and strong views agree pixel
    for pixel. It must be the last transform of the pipeline. Each branch pipeline ends in a packing transform.

    A source fills only the branches that it has a pipeline for. The others are ``None``, so that samples of different
    sources can be collated; ``mmssl.MultiBranchDataPreprocessor`` drops them.

    Args:
        branches: Names of all branches of the training step, the same list in every source: ``sup``, ``unsup_weak``,
            ``unsup_strong``, ...
        branch_pipelines: For each branch that this source fills: its list of transforms.

    Raises:
        ValueError: No branches, a name twice, no pipeline, or a pipeline for a branch that is not in ``branches``.

    Examples:
        >>> branches = ['sup', 'unsup_weak']
        >>> dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])  # doctest: +SKIP
    """

    def __init__(self, branches: Sequence[str], **branch_pipelines: Any) -> None:
        if isinstance(branches, str) or not branches or not all(isinstance(name, str) for name in branches):
            raise ValueError(f'mmssl.MultiBranch: `branches` must be a list of names, got {branches!r}')
        if len(set(branches)) != len(branches):
            raise ValueError(f'mmssl.MultiBranch: `branches` names a branch twice: {list(branches)}')
        self.branches = list(branches)
        for name in branch_pipelines:
            if name not in self.branches:
                raise ValueError(f'mmssl.MultiBranch: there is a pipeline for `{name}`, which is not in '
                                 f'`branches`={self.branches}')
        if not branch_pipelines:
            raise ValueError(f'mmssl.MultiBranch: no pipeline is given for any of `branches`={self.branches}')
        self.branch_pipelines: dict[str, Compose] = {}
        for name in self.branches:
            if name in branch_pipelines:
                pipeline = branch_pipelines[name]
                if pipeline is None or (not isinstance(pipeline, dict) and not callable(pipeline) and not pipeline):
                    raise ValueError(f'mmssl.MultiBranch: the pipeline of `{name}` is empty; it must at least pack')
                single = isinstance(pipeline, dict) or callable(pipeline)
                self.branch_pipelines[name] = Compose([pipeline] if single else pipeline)

    def transform(self, results: dict) -> dict | None:
        """Make all views of one sample.

        Args:
            results: What the common part of the pipeline made.

        Returns:
            ``inputs`` and ``data_samples``, each a dict with all branches, ``None`` where this source has none.
            ``None`` if a branch pipeline rejects the sample, so that the data set draws another one.

        Raises:
            ValueError: A branch pipeline does not end in packing.
        """
        packed: dict = {key: dict.fromkeys(self.branches) for key in ('inputs', 'data_samples')}
        last = len(self.branch_pipelines) - 1
        for number, (name, pipeline) in enumerate(self.branch_pipelines.items()):
            # Pipelines change what they get, so each has a copy of its own; the last one may have the original.
            view = pipeline(results if number == last else copy.deepcopy(results))
            if view is None:
                return None
            if not isinstance(view, dict) or 'inputs' not in view or not view.keys() <= packed.keys():
                keys = sorted(view) if isinstance(view, dict) else type(view).__name__
                raise ValueError(f'mmssl.MultiBranch: the pipeline of `{name}` must end in a packing transform, which '
                                 'returns `inputs` and `data_samples` (PackSegInputs, PackInputs, ...); it returned '
                                 f'{keys}')
            for key, value in view.items():
                packed[key][name] = value
        return packed

    def __repr__(self) -> str:
        return f'{type(self).__name__}(branches={self.branches}, pipelines={list(self.branch_pipelines)})'
