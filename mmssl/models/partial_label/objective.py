"""Base of the objectives of PartialLabelClassifier: what they are given, and what they give back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mmssl.functional.partial_label import uniform_targets
from mmssl.utils.values import CheckedArguments

from .sample_targets import KEY, SampleTargets

HOOK = 'mmssl.SampleTargetsHook'


@dataclass
class PartialLabelBatch:
    """One batch as an objective sees it; floating-point tensors are float32, or float64 in a model of such.

    Attributes:
        candidates: Bool, shape (N, C).
        logits: The student's, with gradient, by branch, each of shape (N, C).
        sample_ids: Number of each sample in the data set, int64 on the CPU, shape (N,); ``None`` if samples have none.
        iteration: Iterations trained before this one.
        teacher_logits: Of the objective's ``teacher_branch``, shape (N, C); ``None`` without a teacher.
        features: What the student's classifier is applied to, by branch, each of shape (N, D); for objectives that
            read them.
        teacher_features: Those of the teacher, shape (N, D).
    """

    candidates: Tensor
    logits: Mapping[str, Tensor]
    sample_ids: Tensor | None = None
    iteration: int = 0
    teacher_logits: Tensor | None = None
    features: Mapping[str, Tensor] = field(default_factory=dict)
    teacher_features: Tensor | None = None


class PartialLabelObjective(CheckedArguments, nn.Module):
    """A loss over candidate sets, with all state that belongs to it: what ``objective`` of the classifier takes.

    A sub-class says in its class attributes what it reads, and writes :meth:`forward`.

    Args:
        num_classes: C >= 2; the classifier sets it.
        branches: Views that the student is trained on; the samples are those of the first one.

    Attributes:
        targets: A row for each sample of the data set, where ``START`` says how it begins; else ``None``.

    Raises:
        ValueError: A branch is not the name of a view, or is there twice.
    """

    # How a sample's targets begin: 'candidates', uniform on the set; 'all', uniform on all classes; None: no targets.
    START: ClassVar[str | None] = None
    # Whether there is a teacher: 'never', 'optional' or 'always'.
    TEACHER: ClassVar[str] = 'never'
    # View that the teacher sees.
    TEACHER_BRANCH: ClassVar[str] = 'unsup_weak'
    READS_FEATURES: ClassVar[bool] = False
    REQUIRED_BRANCHES: ClassVar[tuple[str, ...]] = ('unsup_weak',)

    def __init__(self, num_classes: int, branches: tuple[str, ...]) -> None:
        super().__init__()
        self.check_number('num_classes', num_classes, lambda count: count >= 2, 'an integer >= 2', int)
        check_branches(branches)
        self.num_classes, self.branches = num_classes, tuple(branches)
        self.targets = None if self.START is None else SampleTargets(num_classes, self.START)
        # Iterations of the training and of one pass; no state, since a run may be resumed with more.
        self.max_iters: int | None = None
        self.epoch_iters: int | None = None

    @classmethod
    def required_branches(cls, options: Mapping[str, Any], has_teacher: bool) -> tuple[str, ...]:
        """Views that a batch must have.

        Args:
            options: The objective's config, which may be incomplete.
            has_teacher: Whether the model holds a teacher.

        Raises:
            ValueError: An option is no list of views.
        """
        branches = cls.REQUIRED_BRANCHES
        if options.get('branch') is not None:
            branches = (options['branch'],)
        elif options.get('branches') is not None:
            branches = options['branches']
        check_branches(branches)
        return tuple(dict.fromkeys([*branches, *([cls.TEACHER_BRANCH] if has_teacher else [])]))

    @classmethod
    def required_hooks(cls) -> tuple[str, ...]:
        """Types of the hooks that ``custom_hooks`` must hold, beside the one of a teacher."""
        return () if cls.START is None else (HOOK,)

    def forward(self, batch: PartialLabelBatch) -> tuple[dict[str, Tensor], Tensor]:
        """The losses, computed with autocast off; afterwards the state has taken the batch in.

        Args:
            batch: See there.

        Returns:
            Scalars under names with ``loss``, which add up to the total, and statistics under names without; and the
            targets of these samples, on their candidates, as the batch leaves them: shape (N, C), rows sum to 1.
        """
        raise NotImplementedError(f'{type(self).__name__} must define `forward`')

    @torch.no_grad()
    def reset(self) -> None:
        """Forget everything, for a new run that has loaded a checkpoint of another (``load_from``)."""
        if self.targets is not None:
            self.targets.reset()

    def training_length(self, option: str) -> int:
        """Iterations of the whole training, where an option is left to it.

        Raises:
            ValueError: Nobody has said so.
        """
        return self._known(self.max_iters, option, 'the length of the training')

    def epoch_length(self, option: str) -> int:
        """Iterations of one pass over the data, where an option is left to it.

        Raises:
            ValueError: Nobody has said so.
        """
        return self._known(self.epoch_iters, option, 'the length of a pass over the data')

    def _known(self, count: int | None, option: str, what: str) -> int:
        if count is None:
            raise ValueError(
                f"{KEY}.{option} is None, which follows {what}, but that is not known: add dict(type='{HOOK}') to "
                'custom_hooks, or give the number of iterations'
            )
        return count

    def averaged_modules(self) -> list[tuple[nn.Module, nn.Module]]:
        """Pairs of a moving average and what it follows; they have no buffers."""
        return []


def check_branches(branches: Any) -> None:
    """Refuse what is no list of different views.

    Raises:
        ValueError: Names the key.
    """
    if (
        not isinstance(branches, (list, tuple))
        or not branches
        or not all(isinstance(name, str) and name and name != 'sup' for name in branches)
        or len(set(branches)) < len(branches)
    ):
        raise ValueError(
            "model.objective.branch must be the name of a view, such as 'unsup_weak' (`branches`: different ones), got "
            f'{branches!r}'
        )


def on_candidates(targets: Tensor, candidates: Tensor) -> Tensor:
    """Targets without what lies outside the sets, rows summing to 1; uniform where nothing is left.

    Args:
        targets: >= 0, shape (N, C).
        candidates: Bool, shape (N, C).
    """
    inside = targets * candidates
    total = inside.sum(dim=1, keepdim=True)
    return torch.where(total > 0, inside / total.clamp_min(torch.finfo(total.dtype).tiny), uniform_targets(candidates))
