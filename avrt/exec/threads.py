"""One thread count a process, for every numerical library in it.

Set through threadpoolctl *and* torch before any worker starts, never by the environment: with
differing counts for overlapping stages results differ from run to run.
"""

from __future__ import annotations

import threadpoolctl
import torch


def set_threads(count: int) -> None:
    """Let BLAS, OpenMP and torch use `count` threads each for one operation."""
    threadpoolctl.threadpool_limits(limits=count)
    torch.set_num_threads(count)
