"""Time and memory of ADRLoss against cross entropy, and against a plain transcription of its equations.

    python benchmarks/adr_loss.py [--threads 2] [--repeats 15] [--out FILE]

Every figure is forward + backward of a mean loss, float32, on normal noise for logits. The methods take turns within
each repeat, so that a busy machine slows all of them; the table has medians. Rows:

* ``cross_entropy``: ``F.cross_entropy(logits, label)``.
* ``adr``: ``ADRLoss()``, topk=3 and the batch's phi; ``adr_ignore``: with labels and an ``ignore_index``, as in a
  segmentation head; ``adr_sample``: ``ADRLoss(topk=1, phi='sample')``.
* ``plain``: ``mmssl.functional.adr.adr_penalty``, with autograd.

Small inputs are repeated within one measurement. Memory is what the process holds at its peak beyond its inputs: peak
resident set (VmHWM) of one call, in a process of its own. Linux only, on a CPU; on a GPU it is the allocator's peak.
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
from fpl_loss import resident
from torch import Tensor

from mmssl.functional.adr import adr_penalty
from mmssl.models.losses import ADRLoss

SHAPES = {'imagenet': (256, 1000), 'voc': (4, 21, 512, 512)}
INNER = {'imagenet': 20, 'voc': 1}  # calls in one measurement
METHODS = ('cross_entropy', 'adr', 'adr_ignore', 'adr_sample', 'plain')


def make_inputs(shape: tuple[int, ...], seed: int, device: str) -> tuple[Tensor, Tensor]:
    """Logits that require a gradient, and labels."""
    # As a training has long done: the C library keeps freed memory once it has seen larger tensors come and go.
    torch.empty(5 * 2**20).fill_(0)
    generator = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(shape, generator=generator)).to(device).requires_grad_()
    label = torch.randint(0, shape[1], shape[:1] + shape[2:], generator=generator)
    return logits, label.to(device)


def make_step(method: str, logits: Tensor, label: Tensor) -> Callable[[], None]:
    """One forward and backward of ``method``."""
    loss = ADRLoss(topk=1, phi='sample') if method == 'adr_sample' else ADRLoss()

    def step() -> None:
        logits.grad = None
        if method == 'cross_entropy':
            value = F.cross_entropy(logits, label)
        elif method == 'plain':
            value = adr_penalty(logits).mean()
        else:
            value = loss(logits, label, ignore_index=255 if method == 'adr_ignore' else None)
        value.backward()
        if logits.is_cuda:
            torch.cuda.synchronize()

    return step


def measure_time(name: str, seed: int, device: str, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of one call in each repeat, per method; the methods take turns."""
    logits, label = make_inputs(SHAPES[name], seed, device)
    steps = {method: make_step(method, logits, label) for method in METHODS}
    for step in steps.values():
        step()
    times: dict[str, list[float]] = {method: [] for method in METHODS}
    for repeat in range(repeats):
        for method, step in steps.items():
            start = time.perf_counter()
            for _ in range(INNER[name]):
                step()
            times[method].append(1e3 * (time.perf_counter() - start) / INNER[name])
        print(f'\r{name}: repeat {repeat + 1}/{repeats} ', end='', file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return times


def measure_memory(method: str, shape: tuple[int, ...], seed: int, device: str) -> float:
    """Peak MiB beyond the inputs of one call. Call it in a fresh process: freed memory that is kept would hide uses."""
    make_step(method, *make_inputs((2, shape[1], *[8] * (len(shape) - 2)), seed, device))()  # libraries, threads
    step = make_step(method, *make_inputs(shape, seed, device))
    if device != 'cpu':
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    Path('/proc/self/clear_refs').write_text('5', encoding='utf-8')  # VmHWM becomes VmRSS
    before = resident('VmRSS')
    step()
    return resident('VmHWM') - before


def measure_memory_apart(method: str, name: str, args: argparse.Namespace) -> float:
    """:func:`measure_memory` in a process of its own."""
    command = [sys.executable, __file__, '--memory-of', method, '--shapes', name, '--seed', str(args.seed), '--threads',
               str(args.threads), '--device', args.device]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


def table_rows(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Time and memory of ADRLoss against cross entropy, for the page of benchmarks."""
    by_shape: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results:
        by_shape.setdefault('x'.join(map(str, result['shape'])), {})[result['method']] = result
    rows = []
    for shape, methods in by_shape.items():
        for method in ('adr', 'adr_ignore', 'adr_sample'):
            for key, unit, baseline in (('median_ms', 'ms', 'cross_entropy'), ('median_ms', 'ms', 'plain'),
                                        ('memory_mib', 'MiB', 'cross_entropy')):
                # Of small inputs, the memory is that of the libraries.
                if unit == 'ms' or methods[baseline][key] > 16:
                    rows.append(bench_results.row(f'{method}, {shape}', methods[method][key], unit, baseline,
                                                  methods[baseline][key]))
    return rows


def main(argv: list[str] | None = None) -> None:
    """Measure, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--shapes', nargs='+', choices=SHAPES, default=list(SHAPES))
    parser.add_argument('--repeats', type=int, default=15)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/adr_loss.json)')
    parser.add_argument('--memory-of', choices=METHODS, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    if args.memory_of:
        print(measure_memory(args.memory_of, SHAPES[args.shapes[0]], args.seed, args.device))
        return

    load_before = os.getloadavg()
    results: list[dict[str, Any]] = []
    for name in args.shapes:
        times = measure_time(name, args.seed, args.device, args.repeats)
        memory = {method: measure_memory_apart(method, name, args) for method in METHODS}
        median = {method: statistics.median(values) for method, values in times.items()}
        titles = ('median ms', 'min ms', 'x CE', 'MiB', 'x CE')
        print(f'\n{name} {SHAPES[name]}\n' + ' ' * 16 + ''.join(f'{title:>12}' for title in titles))
        for method in METHODS:
            row = dict(shape=SHAPES[name], method=method, median_ms=median[method], min_ms=min(times[method]),
                       over_cross_entropy=median[method] / median['cross_entropy'], memory_mib=memory[method],
                       memory_over_cross_entropy=memory[method] / max(memory['cross_entropy'], 1e-3))
            results.append(row)
            print(f'{method:16}' + ''.join(f'{value:12.3f}' for value in list(row.values())[2:]))
    bench_results.save(
        'adr_loss', seed=args.seed, threads=args.threads, rows=table_rows(results), out=args.out, argv=argv,
        details=dict(repeats=args.repeats, device=args.device, load_before=load_before, results=results))


if __name__ == '__main__':
    main()
