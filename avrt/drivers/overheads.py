"""What scheduling costs in a simulation, charged as execution to the jobs that it is done for.

The kernel knows nothing of it: a job simply has more to do when it comes to a slot.

* first start: release, decision, launch and context switch. A job is on its slot for the first
  time, so another was there before, or none.
* later segment: decision and launch; and the context switch, unless the job's segment before ended
  on the same device at this very instant, so that it keeps its slot.
* resume after a preemption: decision and context switch. What is left of them when the job is
  preempted again is dropped, because the next resume does them anew.

So a job that preempts another once, which is as often as a job does under any policy but llf,
causes one resume: see `avrt.analysis.overheads`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from avrt.drivers.virtual import VirtualLoop, VirtualWorker
from avrt.kernel import Kernel
from avrt.model.commands import Abort, Dispatch, Preempt, Resume
from avrt.model.events import SegmentEnded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.drivers.loop import Notes
    from avrt.model.events import Event
    from avrt.model.scenario import OverheadSpec
    from avrt.model.spec import PipelineSpec


class ChargedWorker(VirtualWorker, Protocol):
    """A worker that knows what scheduling costs on its devices.

    Attributes:
        overheads: by device.
    """

    @property
    def overheads(self) -> Mapping[str, OverheadSpec]: ...


class ChargedLoop(VirtualLoop):
    """Virtual time in which scheduling costs something."""

    def __init__(
        self,
        spec: PipelineSpec,
        kernel: Kernel,
        feed: Iterator[tuple[int, Event]],
        worker: ChargedWorker,
        journal: Notes,
        *,
        until_ns: int | None = None,
    ) -> None:
        super().__init__(spec, kernel, feed, worker, journal, until_ns=until_ns)
        self._overheads = worker.overheads
        self._devices: dict[int, str] = {}  # where the jobs are that were dispatched
        self._kept: dict[int, tuple[str, int]] = {}  # where and when a job's last segment ended
        self._own_ns: dict[int, int] = {}  # left of a resumed job, without what the resume costs

    def _dispatch(self, command: Dispatch, at_ns: int) -> None:
        super()._dispatch(command, at_ns)
        job = command.job
        self._devices[job] = command.device
        kept = self._kept.pop(job, None) if self._kept else None
        costs = self._overheads.get(command.device)
        if costs is not None:
            keeps_slot = kept == (command.device, at_ns)
            self._work.prolong(job, costs.begin_ns(command.segment, keeps_slot=keeps_slot))

    def _interfere(self, command: Preempt | Resume | Abort, at_ns: int) -> None:
        super()._interfere(command, at_ns)
        job = command.job
        if type(command) is Preempt:
            own_ns = self._own_ns.pop(job, None)
            if own_ns is not None:
                self._work.curtail(job, own_ns)
        elif type(command) is Resume:
            costs = self._overheads.get(self._devices[job])
            if costs is not None:
                self._own_ns[job] = self._work.left_ns(job, at_ns)
                self._work.prolong(job, costs.resume_ns)

    def _end(self, job: int, at_ns: int) -> Event:
        device = self._devices[job]
        event = super()._end(job, at_ns)
        if type(event) is SegmentEnded and job in self._devices:  # it was not abandoned
            self._kept[job] = (device, at_ns)
        self._forget(job)
        return event

    def _abandon(self, job: int, at_ns: int) -> None:
        super()._abandon(job, at_ns)
        self._forget(job)
        self._kept.pop(job, None)

    def _keep_only(self, jobs: tuple[int, ...]) -> None:
        super()._keep_only(jobs)
        for job in [job for job in (*self._devices, *self._kept) if job not in jobs]:
            self._forget(job)
            self._kept.pop(job, None)

    def _forget(self, job: int) -> None:
        """Forget a job that is on no device any more."""
        self._own_ns.pop(job, None)
        self._devices.pop(job, None)


def simulation_loop(
    spec: PipelineSpec,
    feed: Iterator[tuple[int, Event]],
    worker: ChargedWorker,
    journal: Notes,
    until_ns: int,
) -> VirtualLoop:
    """Return the loop of a simulation; where scheduling costs nothing, nothing is charged."""
    kind = ChargedLoop if worker.overheads else VirtualLoop
    return kind(spec, Kernel(spec), feed, worker, journal, until_ns=until_ns)
