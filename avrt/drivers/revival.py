"""A device that broke is tried again, after a second, two, four ..., and then proves itself.

A probe of the device decides whether it answers, and a trial (`probation`) whether what it computes
is right; only then does the driver hear that it is back. When the next try is, and when there is
none any more, says `avrt.safety.recovery`. A thread for each device that is lost does it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from avrt import clock
from avrt.drivers.probation import tell_failed
from avrt.errors import FaultError
from avrt.exec.runner import guarded
from avrt.model.events import DeviceBack, Event
from avrt.safety.recovery import Recovery
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.drivers.probation import Trial
    from avrt.drivers.shadows import Shadows
    from avrt.drivers.wall import Inbox

LOOK_NS = 50 * NS_PER_MS


class Revival:
    """Tries lost devices again and tells the driver when one has proved itself.

    Args:
        inbox: of the driver.
        probe: tells whether a device answers; whatever it raises means no.
        trial: makes the trial of a device that does.
        shadows: what its twins follow.
        stopped: is set when nobody cares any more.

    Attributes:
        prepare: sets the thread up that tries a device, named as given.
        back: is told, on the driver's thread, of each device that is back.
        out: devices that stay out, and why.
    """

    def __init__(
        self,
        inbox: Inbox,
        probe: Callable[[str], bool],
        trial: Callable[[str], Trial | FaultError],
        shadows: Shadows,
        stopped: threading.Event,
    ) -> None:
        self._inbox = inbox
        self._probe = probe
        self._trial = trial
        self._shadows = shadows
        self._stopped = stopped
        self._recoveries: defaultdict[str, Recovery] = defaultdict(Recovery)
        self.prepare: Callable[[str], object] = lambda _name: None
        self.back: Callable[[str], object] = lambda _device: None
        self.out: dict[str, str] = {}

    def lost(self, device: str) -> None:
        """Begin to try a device; called on the driver's thread."""
        recovery = self._recoveries[device]
        recovery.lost(clock.now_ns())
        name = f"avrt-revive-{device}"
        arguments = (device, recovery)
        threading.Thread(target=self._try, args=arguments, name=name, daemon=True).start()

    def _try(self, device: str, recovery: Recovery) -> None:
        self.prepare(f"revive-{device}")
        while not self._stopped.wait(recovery.wait_ns / NS_PER_S):
            if guarded(lambda: self._probe(device)) is not True:
                recovery.silent()
                continue
            why = self._why_not(device)
            if why is None:
                return
            if not why:
                self._inbox.put(lambda _now_ns: self._found(device, recovery))
                return
            recovery.failed(clock.now_ns())
            tell_failed(device, why, recovery)
            if recovery.is_out:
                self.out[device] = why
                return

    def _why_not(self, device: str) -> str | None:
        """Let a device prove itself; return "" if it did, why not, or None if nobody cares."""
        trial = self._trial(device)
        if isinstance(trial, FaultError):
            return str(trial)
        why = trial.begin()
        if why or self._stopped.is_set():
            trial.close()
            return why or None
        self._tell(trial.join)
        while (verdict := trial.verdict(clock.now_ns())) is None:
            if self._stopped.wait(LOOK_NS / NS_PER_S):
                return None  # the worker closes what it followed
        self._tell(trial.leave)
        return verdict

    def _tell(self, change: Callable[[Shadows], None]) -> None:
        """Let twins join or leave on the driver's thread."""

        def changed(_now_ns: int) -> Sequence[Event]:
            change(self._shadows)
            return ()

        self._inbox.put(changed)

    def _found(self, device: str, recovery: Recovery) -> Sequence[Event]:
        recovery.back(clock.now_ns())
        self.back(device)
        return (DeviceBack(device),)
