"""One thing about the host that matters for real time: found, wanted, and what to do about it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from avrt.device.topology import Topology, read_topology
from avrt.exec.system import SYSTEM, System

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.exec.rights import Right

Verdict = Literal["ok", "advice", "refused"]
LIMITS_FILE = "/etc/security/limits.d/avrt.conf"


@dataclass(frozen=True, slots=True)
class Check:
    """What one check came to.

    Attributes:
        name: of the check.
        found: what the host has.
        wanted: what is good for real time.
        verdict: `ok`; `advice`, it could be better; `refused`, avrt asked and was turned down.
        remedy: what to type or to change; empty where all is well.
        cost: what it costs not to have it.
    """

    name: str
    found: str
    wanted: str
    verdict: Verdict
    remedy: str = ""
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """What checks look at; tests replace each part.

    Attributes:
        system: kernel files, limits and rights.
        topology: cores.
        environment: variables.
        folder: where run records are going to be written.
    """

    system: System = SYSTEM
    topology: Topology = field(default_factory=read_topology)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path = Path()

    def file(self, path: str) -> str:
        """Return a kernel file's text, empty where there is none."""
        return self.system.read(path) or ""


def judged(name: str, found: str, wanted: str, *, good: bool, remedy: str, cost: str) -> Check:
    """Return a check that is well, or advice."""
    if good:
        return Check(name, found, wanted, "ok", cost=cost)
    return Check(name, found, wanted, "advice", remedy, cost)


def asked(name: str, right: Right, wanted: str, remedy: str) -> Check:
    """Return a check of a measure that was asked for just now."""
    if right.granted:
        return Check(name, right.told, wanted, "ok", cost=right.cost)
    return Check(name, right.told, wanted, "refused", remedy, right.cost)


def gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
