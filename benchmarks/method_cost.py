"""Time of an iteration and peak memory of every method, each against the supervised baseline, measured in one run.

    CAMVID_ROOT=data/camvid python benchmarks/method_cost.py configs/fpl/camvid/*.py

The first config whose file name starts with ``supervised`` is the baseline. Each config is trained by mmengine's Runner
with its own data, optimizer and hooks (those that only look are left out), for a few iterations at a time, in a new
process; the configs take turns, so that a change of the machine's speed meets all. An iteration is what lies between
the arrival of its batch and the end of its hooks: forward, backward, optimizer, and what the method does besides, such
as the update of a teacher, which is also given alone. The unsupervised loss has its full weight from the first
iteration on. Memory is the peak of the process above what it had before the model was built.
"""

import argparse
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_results
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

ONLY_LOOK = ('FPLDiagnosticsHook', 'PseudoLabelVisualizationHook')


class StopwatchHook(Hook):
    """Times the iterations of a training, and the updates of its teacher, if it has one."""

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.iterations: list[float] = []
        self.teacher: list[float] = []

    def before_train(self, runner: Runner) -> None:
        """Wrap the model's method that moves the teacher."""
        update = getattr(runner.model, 'update_teacher', None)
        if update is None:
            return

        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            result = update(*args, **kwargs)
            self.teacher.append(time.perf_counter() - begin)
            return result

        runner.model.update_teacher = timed

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        """Start."""
        self._begin = time.perf_counter()

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """Stop."""
        self.iterations.append(time.perf_counter() - self._begin)


def peak_mib() -> float:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == 'darwin' else 1 << 10)


def prepared(path: str, iterations: int, work_dir: str, seed: int) -> Config:
    """The config as it is trained here."""
    cfg = Config.fromfile(path)
    cfg.work_dir, cfg.experiment_name = work_dir, f'cost-{Path(path).stem}'
    cfg.visualizer.name = cfg.experiment_name
    cfg.randomness = dict(seed=seed)
    cfg.log_level = 'ERROR'
    cfg.train_cfg.update(max_iters=iterations, val_interval=iterations + 1)
    for key in ('val_cfg', 'val_dataloader', 'val_evaluator', 'test_cfg', 'test_dataloader', 'test_evaluator'):
        cfg.pop(key, None)
    cfg.default_hooks.checkpoint = None
    cfg.custom_hooks = [
        hook for hook in cfg.get('custom_hooks') or [] if hook['type'].rpartition('.')[2] not in ONLY_LOOK
    ]
    options = cfg.model.get('semi_train_cfg')
    if options is not None:
        options.update(unsup_begin=0, unsup_ramp=0)
    return cfg


def train(path: str, iterations: int, warm_up: int, threads: int, seed: int, answer: Any) -> None:
    """Train for a few iterations and send what they took."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as work_dir:
        cfg = prepared(path, iterations + warm_up, work_dir, seed)
        before = peak_mib()
        runner = Runner.from_cfg(cfg)
        stopwatch = StopwatchHook()
        runner.register_hook(stopwatch)
        runner.train()
        answer.send(dict(iterations=stopwatch.iterations[warm_up:], teacher=stopwatch.teacher[warm_up:],
                         memory=peak_mib() - before))


def measure(path: str, args: argparse.Namespace) -> dict[str, Any]:
    """:func:`train` in a process of its own.

    Raises:
        RuntimeError: If it failed; its traceback is on stderr.
    """
    context = multiprocessing.get_context('fork')
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=train, args=(path, args.iterations, args.warm_up, args.threads, args.seed, sender))
    process.start()
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        raise RuntimeError(f'the training of {path} failed, see above') from None
    process.join()
    return result


def main(argv: list[str] | None = None) -> int:
    """Measure, print the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('configs', nargs='+')
    parser.add_argument('--rounds', type=int, default=5, help='times that every config gets its turn')
    parser.add_argument('--iterations', type=int, default=10, help='iterations of a turn that count')
    parser.add_argument('--warm-up', type=int, default=3, help='iterations before them')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/method_cost.json)')
    args = parser.parse_args(argv)
    baseline = next((path for path in args.configs if Path(path).name.startswith('supervised')), None)
    if baseline is None:
        parser.error('no config is named supervised*, so there is nothing to compare with')
    configs = [baseline, *(path for path in args.configs if path != baseline)]
    results: dict[str, list[dict[str, Any]]] = {path: [] for path in configs}
    for number in range(args.rounds):
        for path in configs:
            results[path].append(measure(path, args))
        print(f'round {number + 1} of {args.rounds} done', file=sys.stderr)

    def name(path: str) -> str:
        return Path(path).stem.split('_')[0]

    summary = {}
    for path, turns in results.items():
        times = [1e3 * value for turn in turns for value in turn['iterations']]
        teacher = [1e3 * value for turn in turns for value in turn['teacher']]
        summary[name(path)] = dict(
            config=path, ms=statistics.median(times), memory_mib=statistics.median(turn['memory'] for turn in turns),
            teacher_ms=statistics.median(teacher) if teacher else None)
    base = summary[name(baseline)]
    rows = []
    for method, figures in summary.items():
        compared = method != name(baseline)
        rows.append(bench_results.row(
            f'{method}: iteration', figures['ms'], 'ms', *(('supervised', base['ms']) if compared else ())))
        rows.append(bench_results.row(
            f'{method}: peak memory', figures['memory_mib'], 'MiB',
            *(('supervised', base['memory_mib']) if compared else ())))
        if figures['teacher_ms'] is not None:
            rows.append(bench_results.row(
                f'{method}: update of the teacher', figures['teacher_ms'], 'ms', 'its iteration', figures['ms']))
        print(f'{method:<28} {figures["ms"]:8.1f} ms ({figures["ms"] / base["ms"]:.2f} x)  '
              f'{figures["memory_mib"]:7.0f} MiB  teacher '
              + ('-' if figures['teacher_ms'] is None else
                 f'{figures["teacher_ms"]:.2f} ms ({figures["teacher_ms"] / figures["ms"]:.1%})'))
    bench_results.save('method_cost', seed=args.seed, threads=args.threads, rows=rows, details=summary, argv=argv,
                       out=args.out)
    return 0


if __name__ == '__main__':
    sys.exit(main())
