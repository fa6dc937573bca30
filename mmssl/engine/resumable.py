"""What makes any run of mmengine's Runner one that can be killed and resumed to the same end."""

from mmengine.hooks import CheckpointHook
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, Runner

from .hooks import AtomicCheckpointHook, IterationSeedHook

LOOPS = {
    'IterBasedTrainLoop': 'mmssl.ResumableIterBasedTrainLoop',
    'EpochBasedTrainLoop': 'mmssl.ResumableEpochBasedTrainLoop',
}
CLASSES = {IterBasedTrainLoop: 'IterBasedTrainLoop', EpochBasedTrainLoop: 'EpochBasedTrainLoop'}


def make_resumable(runner: Runner) -> list[str]:
    """Put the parts that survive a kill in the place of mmengine's plain ones; ``tools/train.py`` calls this.

    Random numbers of the model become a function of the iteration (``mmssl.IterationSeedHook``), plain
    ``CheckpointHook`` become ``mmssl.AtomicCheckpointHook``, and, if the run is a resumed one, a plain training loop
    becomes ``mmssl.ResumableIterBasedTrainLoop`` or ``mmssl.ResumableEpochBasedTrainLoop``. The config stays as it is,
    and so do classes of the user's own.

    Args:
        runner: A runner whose training has not begun.

    Returns:
        One line for each replacement, for the log.
    """
    lines = []
    if not any(isinstance(hook, IterationSeedHook) for hook in runner.hooks):
        runner.register_hook(IterationSeedHook())
    for index, hook in enumerate(runner.hooks):
        if type(hook) is CheckpointHook:
            runner.hooks[index] = AtomicCheckpointHook.from_plain(hook)
            lines.append('CheckpointHook -> mmssl.AtomicCheckpointHook: checkpoints are written whole or not at all')
    loop = runner._train_loop
    if runner._resume and isinstance(loop, dict):
        settings = dict(loop)
        kind = settings.pop('type', None)
        if kind is None:
            kind = 'EpochBasedTrainLoop' if settings.pop('by_epoch', True) else 'IterBasedTrainLoop'
        name = CLASSES.get(kind) if isinstance(kind, type) else kind.rpartition('.')[2]
        if name in LOOPS and kind not in LOOPS.values():
            runner._train_loop = dict(settings, type=LOOPS[name])
            lines.append(f'{name} -> {LOOPS[name]}: a resumed run continues at once, where it was')
    return lines
