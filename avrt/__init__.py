"""avrt: a real-time automotive perception runtime.

One deterministic scheduling kernel runs live, in replay and in simulation. `import avrt` is cheap:
a name is imported when it is first used, so that a part of the package runs with the dependencies
of that part alone, and torch is imported when something runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.api import Orders, Pipeline, Reading, Report, Source, Stage, stage
    from avrt.errors import AvrtError, FaultError, InputError, SpecError
    from avrt.logs.record.run_file import read_outputs
    from avrt.metrics.sets import DroppedSet
    from avrt.model.message import Message, Stamp

__all__ = [
    "AvrtError",
    "DroppedSet",
    "FaultError",
    "InputError",
    "Message",
    "Orders",
    "Pipeline",
    "Reading",
    "Report",
    "Source",
    "SpecError",
    "Stage",
    "Stamp",
    "read_outputs",
    "stage",
]

_MODULES = {
    "avrt.api": ("Orders", "Pipeline", "Reading", "Report", "Source", "Stage", "stage"),
    "avrt.errors": ("AvrtError", "FaultError", "InputError", "SpecError"),
    "avrt.logs.record.run_file": ("read_outputs",),
    "avrt.metrics.sets": ("DroppedSet",),
    "avrt.model.message": ("Message", "Stamp"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'avrt' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOME.keys())
