"""All checks of a host, in the order in which they are shown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from avrt.exec.doctor.libraries import check_libraries
from avrt.exec.doctor.memory import check_memory
from avrt.exec.doctor.processors import check_processors
from avrt.exec.doctor.scheduling import check_scheduling
from avrt.exec.realtime import passive_openmp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.exec.doctor.check import Check, Host


def examine(host: Host) -> list[Check]:
    """Return every check of `host`; torch is imported on the way."""
    openmp = passive_openmp(host.system)
    return [
        *check_processors(host),
        *check_scheduling(host),
        *check_memory(host),
        *check_libraries(host, openmp),
    ]


def counts(checks: Sequence[Check]) -> dict[str, int]:
    """Return how many checks came to each verdict."""
    found = Counter(check.verdict for check in checks)
    return {"ok": found["ok"], "advice": found["advice"], "refused": found["refused"]}
