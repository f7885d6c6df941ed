"""How this process is set up before jobs run.

One thread count for every numerical library, set through threadpoolctl *and* torch before any
worker starts and never by the environment: with differing counts for overlapping stages results
differ from run to run. What is alive before the first job (some 300,000 objects of torch and scipy)
is put out of the garbage collector's sight: one full collection took 110 ms of a 12 ms stage.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

import threadpoolctl
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


def set_threads(count: int) -> None:
    """Let BLAS, OpenMP and torch use `count` threads each for one operation."""
    threadpoolctl.threadpool_limits(limits=count)
    torch.set_num_threads(count)


@contextmanager
def frozen_garbage() -> Iterator[None]:
    """Collect garbage now and keep the collector off what is alive until the end."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
