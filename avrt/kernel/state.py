"""What all parts of the kernel share: the instant, the commands so far, timers, buffers, mode."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from avrt.kernel.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.kernel.buffers import Buffers
    from avrt.kernel.ladder import Mode
    from avrt.model.commands import Command


class State:
    """The kernel's present.

    Attributes:
        modes: all of them by name; `mode` is the present one, at first the first.
        out: collects the commands of the call being handled.
        underway: by stage, releases and open sets that may still come to publish something.
    """

    def __init__(self, buffers: Buffers, modes: Mapping[str, Mode]) -> None:
        self.now_ns = 0
        self.out: list[Command] = []
        self.timers = Timers()
        self.buffers = buffers
        self.modes = modes
        self.mode = next(iter(modes.values()))
        self.draining = False
        self.underway: Counter[str] = Counter()
