"""Work on (N, C, P) tensors piece by piece, so that what an operation leaves is still in the cache for the next one.

On a CPU, each thread works through pieces of its own: many small operations that all threads had to begin and end
together would wait for the slowest, on a machine that is busy with loading data.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import torch
from torch import Tensor

Piece = tuple[slice, slice]  # images and pixels


def parts(width: int, size: int) -> list[slice]:
    """Slices of at most ``size`` that cover ``width``."""
    return [slice(start, min(start + size, width)) for start in range(0, width, size)]


def blocks(num_images: int, num_pixels: int, size: int) -> Iterator[Piece]:
    """Cut (images, pixels) into pieces of about ``size`` pixels: parts of one image, or several whole images."""
    if num_pixels >= size or num_images == 1:
        for image in range(num_images):
            for start in range(0, num_pixels, size):
                yield slice(image, image + 1), slice(start, min(start + size, num_pixels))
    elif num_pixels:
        images = max(size // num_pixels, 1)
        for image in range(0, num_images, images):
            yield slice(image, min(image + images, num_images)), slice(0, num_pixels)


def columns_of(tensor: Tensor, piece: Piece, dtype: torch.dtype) -> Tensor:
    """One piece of a (N, C, P) tensor as (C, n) with contiguous rows: a view where it can be."""
    images, pixels = piece
    if images.stop - images.start == 1:
        columns = tensor[images.start, :, pixels]
    else:
        columns = tensor[images].transpose(0, 1).flatten(1)
    columns = columns.to(dtype)
    return columns if columns.stride(1) == 1 else columns.contiguous()


@lru_cache(maxsize=8)
def single_threads(count: int, process: int) -> ThreadPoolExecutor:
    """``count`` threads whose tensor operations each run on one core, for the life of ``process``.

    PyTorch's number of threads is a setting of each thread that new threads take over from the last one who set it;
    so it is put back. A forked process has none of these threads, hence the second key.
    """
    started = threading.Barrier(count + 1)

    def start() -> None:
        torch.get_num_threads()  # makes the thread take over the common setting now and not over ours later
        torch.set_num_threads(1)
        started.wait()

    pool = ThreadPoolExecutor(count, thread_name_prefix='mmssl')
    for _ in range(count):
        pool.submit(start)
    started.wait()
    torch.set_num_threads(count)
    return pool


def for_each(pieces: list[Piece], make_worker: Callable[[], Callable[[Piece], None]], num_threads: int) -> None:
    """Call a worker with every piece; with several threads, each has a worker of its own and takes what is next."""
    todo = iter(pieces)  # shared: the interpreter hands out each element once
    inference = torch.is_inference_mode_enabled()

    def run() -> None:
        # Settings of the thread; in this order, since inference_mode(False) switches gradients on.
        with torch.inference_mode(inference), torch.no_grad():
            worker = make_worker()
            for piece in todo:
                worker(piece)

    num_threads = min(num_threads, len(pieces))
    if num_threads <= 1:
        run()
        return
    pool = single_threads(torch.get_num_threads(), os.getpid())
    for future in [pool.submit(run) for _ in range(num_threads)]:
        future.result()


def as_images(tensor: Tensor) -> Tensor:
    """(N, C, *) as (N, C, P), and (N, C) as one image of N pixels, (1, C, N); a view where it can be."""
    return tensor.T.unsqueeze(0) if tensor.dim() == 2 else tensor.flatten(2)
