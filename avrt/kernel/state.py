"""What all parts of the kernel share: the instant, the commands so far, timers, buffers, mode."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from avrt.kernel.timers import Timers

if TYPE_CHECKING:
    from avrt.kernel.buffers import Buffers
    from avrt.kernel.ladder import Mode
    from avrt.model.commands import Command


class State:
    """The kernel's present.

    Attributes:
        out: collects the commands of the call being handled.
        underway: by stage, releases and open sets that may still come to publish something.
    """

    def __init__(self, buffers: Buffers, mode: Mode) -> None:
        self.now_ns = 0
        self.out: list[Command] = []
        self.timers = Timers()
        self.buffers = buffers
        self.mode = mode
        self.draining = False
        self.underway: Counter[str] = Counter()
