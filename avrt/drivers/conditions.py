"""The conditions of a run: a figure without them is not worth quoting."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

import psutil

from avrt import clock
from avrt.model.printable import encodable

PACKAGES = ("avrt", "numpy", "scipy", "torch", "mcap", "rosbags")


def read_conditions(**more: str) -> dict[str, str]:
    """Return host, processor, versions and load as text, with whatever the caller adds."""
    conditions = {
        "date": clock.wall_date(),
        "host": platform.node(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory_gib": f"{psutil.virtual_memory().total / 2**30:.1f}",
        "load_1min": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
    }
    conditions.update((name, version(name)) for name in PACKAGES)
    conditions.update((name, encodable(text)) for name, text in more.items())
    return conditions


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as text:  # noqa: PTH123 - a kernel file
            names = [line.partition(":")[2].strip() for line in text if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
