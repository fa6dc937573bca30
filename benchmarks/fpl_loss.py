"""Time and memory of FPLLoss, against cross entropy with the teacher's arg-max and against a plain transcription.

    python benchmarks/fpl_loss.py [--threads 2] [--repeats 15] [--out FILE]

Every figure is forward + backward of a mean loss, float32. The methods take turns within each repeat, so that a busy
machine slows all of them; the table has medians. Rows:

* ``cross_entropy``: ``F.cross_entropy(logits, label)``, the label ready; ``cross_entropy_argmax`` also computes it,
  which is what the step of cross pseudo supervision pays.
* ``fpl``: ``FPLLoss()``; ``fpl_released``: the released code's options (K <= 3, balanced to cross entropy);
  ``fpl_scaled``: ``1.5 * FPLLoss()``, an incoming gradient other than 1, which costs a copy.
* ``plain``: the functions of ``mmssl.functional.fpl``, a sort-based transcription, with autograd.

Teachers: ``trained`` has smooth, confident logits, K = 1 at most pixels; ``random`` has normal noise for logits, the
worst case. Memory is what the process holds at its peak beyond its inputs: peak resident set (VmHWM, reset through
/proc/self/clear_refs) of one call, in a process of its own. Linux only, on a CPU; on a GPU it is the allocator's peak.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_results
import torch
import torch.nn.functional as F
from torch import Tensor

from mmssl.functional import fpl
from mmssl.models.losses import FPLLoss

SHAPES = {'voc': (4, 21, 512, 512), 'cityscapes': (2, 19, 769, 769)}
TEACHERS = ('trained', 'random')
METHODS = ('cross_entropy', 'cross_entropy_argmax', 'fpl', 'fpl_released', 'fpl_scaled', 'plain')


def plain_fpl(logits: Tensor, target_logits: Tensor) -> Tensor:
    """FPL as the paper writes it down: sort, cumulate, mask, two log-sum-exps."""
    fuzzy = fpl.fuzzy_positive_assignment(target_logits)
    weight = fpl.fuzzy_positive_weight(fuzzy.positive_prob, fuzzy.negative_prob, fuzzy.k)
    return (weight * fpl.fuzzy_positive_loss(logits, fuzzy.positive)).mean()


def make_inputs(shape: tuple[int, ...], teacher: str, seed: int, device: str) -> tuple[Tensor, Tensor]:
    """Student logits that require a gradient, and teacher logits."""
    generator = torch.Generator().manual_seed(seed)
    if teacher == 'random':
        target = torch.randn(shape, generator=generator)
    else:
        coarse = torch.randn(shape[0], shape[1], shape[2] // 16 + 2, shape[3] // 16 + 2, generator=generator) * 12
        target = F.interpolate(coarse, size=shape[2:], mode='bilinear')
    student = (0.8 * target + torch.randn(shape, generator=generator)).to(device).requires_grad_()
    return student, target.to(device)


def make_step(method: str, logits: Tensor, target: Tensor) -> Callable[[], None]:
    """One forward and backward of ``method``."""
    label = target.argmax(dim=1) if method == 'cross_entropy' else None
    loss = FPLLoss(max_k=3, weight_bound='top_k_plus_1', balance='ce_value') if method == 'fpl_released' else FPLLoss()

    def step() -> None:
        logits.grad = None
        if method == 'cross_entropy':
            value = F.cross_entropy(logits, label)
        elif method == 'cross_entropy_argmax':
            value = F.cross_entropy(logits, target.argmax(dim=1))
        elif method == 'plain':
            value = plain_fpl(logits, target)
        else:
            value = loss(logits, target) * (1.5 if method == 'fpl_scaled' else 1)
        value.backward()
        if logits.is_cuda:
            torch.cuda.synchronize()

    return step


def measure_time(shape: tuple[int, ...], teacher: str, seed: int, device: str, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each repeat, per method; the methods take turns."""
    logits, target = make_inputs(shape, teacher, seed, device)
    steps = {method: make_step(method, logits, target) for method in METHODS}
    for step in steps.values():
        step()
    times: dict[str, list[float]] = {method: [] for method in METHODS}
    for repeat in range(repeats):
        for method, step in steps.items():
            start = time.perf_counter()
            step()
            times[method].append(1e3 * (time.perf_counter() - start))
        print(f'\r{teacher} {shape}: repeat {repeat + 1}/{repeats} ', end='', file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return times


def resident(field: str) -> float:
    """A line of /proc/self/status in MiB."""
    for line in Path('/proc/self/status').read_text(encoding='utf-8').splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f'/proc/self/status has no {field}: peak memory can be measured on Linux only')


def measure_memory(method: str, shape: tuple[int, ...], teacher: str, seed: int, device: str) -> float:
    """Peak MiB beyond the inputs of one call. Call it in a fresh process: freed memory that is kept would hide uses."""
    make_step(method, *make_inputs((2, shape[1], 8, 8), teacher, seed, device))()  # libraries, threads
    step = make_step(method, *make_inputs(shape, teacher, seed, device))
    if device != 'cpu':
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    Path('/proc/self/clear_refs').write_text('5', encoding='utf-8')  # VmHWM becomes VmRSS
    before = resident('VmRSS')
    step()
    return resident('VmHWM') - before


def measure_memory_apart(method: str, shape_name: str, teacher: str, args: argparse.Namespace) -> float:
    """:func:`measure_memory` in a process of its own."""
    command = [sys.executable, __file__, '--memory-of', method, '--shapes', shape_name, '--teachers', teacher,
               '--seed', str(args.seed), '--threads', str(args.threads), '--device', args.device]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


def table_rows(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Time and memory of FPLLoss against cross entropy, for the page of benchmarks."""
    by_case: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for result in results:
        case = 'x'.join(map(str, result['shape'])), result['teacher']
        by_case.setdefault(case, {})[result['method']] = result
    rows = []
    for (shape, teacher), methods in by_case.items():
        for method in ('fpl', 'fpl_released'):
            what = f'{method}, {shape}, {teacher} teacher'
            for key, unit, baseline in (('median_ms', 'ms', 'cross_entropy_argmax'), ('median_ms', 'ms', 'plain'),
                                        ('memory_mib', 'MiB', 'cross_entropy')):
                rows.append(bench_results.row(what, methods[method][key], unit, baseline, methods[baseline][key]))
    return rows


def main(argv: list[str] | None = None) -> None:
    """Measure, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--shapes', nargs='+', choices=SHAPES, default=list(SHAPES))
    parser.add_argument('--teachers', nargs='+', choices=TEACHERS, default=list(TEACHERS))
    parser.add_argument('--repeats', type=int, default=15)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/fpl_loss.json)')
    parser.add_argument('--memory-of', choices=METHODS, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    if args.memory_of:
        print(measure_memory(args.memory_of, SHAPES[args.shapes[0]], args.teachers[0], args.seed, args.device))
        return

    load_before = os.getloadavg()
    results: list[dict[str, Any]] = []
    titles = ('median ms', 'min ms', 'x CE', 'x CE+argmax', 'plain / it', 'MiB', 'x CE')
    header = ' ' * 22 + ''.join(f'{title:>12}' for title in titles)
    for name in args.shapes:
        for teacher in args.teachers:
            logits, target = make_inputs(SHAPES[name], teacher, args.seed, args.device)
            loss = FPLLoss()
            loss(logits.detach(), target)
            k1_ratio, mean_k = (loss.statistics[key].item() for key in ('k1_ratio', 'mean_k'))
            del logits, target
            times = measure_time(SHAPES[name], teacher, args.seed, args.device, args.repeats)
            median = {method: statistics.median(values) for method, values in times.items()}
            memory = {method: measure_memory_apart(method, name, teacher, args) for method in METHODS}
            print(f'\n{name} {SHAPES[name]}, {teacher} teacher: K = 1 at {k1_ratio:.1%}, mean K {mean_k:.2f}\n{header}')
            for method in METHODS:
                row = dict(
                    shape=SHAPES[name], teacher=teacher, k1_ratio=k1_ratio, method=method, median_ms=median[method],
                    min_ms=min(times[method]), over_cross_entropy=median[method] / median['cross_entropy'],
                    over_cross_entropy_argmax=median[method] / median['cross_entropy_argmax'],
                    plain_over_this=median['plain'] / median[method], memory_mib=memory[method],
                    memory_over_cross_entropy=memory[method] / memory['cross_entropy'])
                results.append(row)
                print(f'{method:22}' + ''.join(f'{value:12.2f}' for value in list(row.values())[4:]))
    bench_results.save(
        'fpl_loss', seed=args.seed, threads=args.threads, rows=table_rows(results), out=args.out, argv=argv,
        details=dict(repeats=args.repeats, device=args.device, load_before=load_before, results=results))


if __name__ == '__main__':
    main()
