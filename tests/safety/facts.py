"""Messages as a guard sees them, made by hand."""

from avrt.config.guard import DEFAULTS
from avrt.safety.content import Content
from avrt.safety.guard import Facts, Guard
from avrt.safety.identity import Identity

MS = 1_000_000
PERIOD_NS = 100 * MS
NOBODY = Identity()
FINE = {"level": 100.0, "spread": 40.0, "spreads": (30.0,) * 25}
BLACK = {"level": 1.0, "spread": 5.0, "spreads": (5.0,) * 25}


def guard_of(kind="camera", period_ns=PERIOD_NS, spec=None):
    return Guard("it", DEFAULTS[kind] if spec is None else spec, period_ns)


class Sender:
    """Sends messages to a guard, one a period, each with a content of its own."""

    def __init__(self, guard, *, counting=True):
        self.guard = guard
        self.counting = counting
        self.count = 0
        self.now_ns = 0
        self.reasons = []
        self.changes = []
        self.missing = 0

    def send(self, times=1, *, after_ns=PERIOD_NS, counter=None, **more):
        """Send messages; return why each was rejected."""
        told = []
        for _ in range(times):
            self.now_ns += after_ns
            self.count += 1
            counted = self.count if counter is None else counter
            told.append(self._send(counted if self.counting else None, **more))
        self.reasons += told
        return told

    def _send(
        self, counter, *, capture_ns=None, jumped=False, epoch=0, said=NOBODY, writer="", **content
    ):
        known = {"size": 1000, "fingerprint": self.count, **FINE, **content}
        captured_ns = self.now_ns if capture_ns is None else capture_ns
        facts = Facts(
            self.now_ns, captured_ns, Content(**known), counter, jumped, epoch, said, writer
        )
        reason, missing, changes = self.guard.take(facts)
        self.missing += missing
        self.changes += changes
        return reason

    def lose(self, times=1):
        """Let messages be lost on their way."""
        self.count += times
        self.now_ns += times * PERIOD_NS

    @property
    def states(self):
        return [(change.state, change.at_ns // MS) for change in self.changes]


def started(kind="camera", **more):
    """Return a sender whose counter is believed by now, at 1.1 s."""
    sender = Sender(guard_of(kind, **more))
    sender.send(11)
    assert sender.reasons == [""] * 11
    return sender
