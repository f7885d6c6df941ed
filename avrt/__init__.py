"""avrt: a real-time automotive perception runtime.

One deterministic scheduling kernel runs live, in replay and in simulation. `import avrt` is cheap;
torch is imported when something runs.
"""

from avrt.api import Pipeline, Reading, Report, Source, Stage, stage
from avrt.errors import AvrtError, FaultError, InputError, SpecError
from avrt.logs.record.run_file import read_outputs
from avrt.model.message import Message, Stamp

__all__ = [
    "AvrtError",
    "FaultError",
    "InputError",
    "Message",
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
