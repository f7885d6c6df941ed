"""Where the stream of each task is: on its device or a fallback, lost with them, or hung.

A task belongs on one device (`home`), by the mode; its stream is there, or on the first of that
device's fallbacks that is not lost. Jobs that have not begun go where the stream goes; work goes on
where it began, and ends with that device only.

A stream that *hung*, or was lost by itself, works nowhere until it is back, or the device on which
it belongs is; another mode lets it belong elsewhere all the same. A task of several segments is
lost with any device that one of them has no other place for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.kernel import segments
from avrt.model.commands import Record
from avrt.model.records import ResourceRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from avrt.kernel.job import Task
    from avrt.kernel.ladder import Mode
    from avrt.kernel.lifecycle import Lifecycle
    from avrt.kernel.queues import DeviceQueue
    from avrt.kernel.state import State


class Streams:
    """The streams of all tasks."""

    def __init__(
        self,
        state: State,
        lifecycle: Lifecycle,
        tasks: Sequence[Task],
        devices: Mapping[str, DeviceQueue],
    ) -> None:
        self._state = state
        self._lifecycle = lifecycle
        self._tasks = tasks
        self._devices = devices

    def lost(self, task: Task) -> None:
        """End everything on a stream that is gone, and whatever is released for it later."""
        if task.hung:  # in this instant
            return
        task.hung = True
        if not task.lost:
            self._note(task.name, "lost")
        self._lose(task)

    def back(self, task: Task) -> None:
        """Let a lost stream work again where it belongs, if there is a place."""
        task.hung = False
        if task.lost and task.home.stand_in is not None:
            self._note(task.name, "back")
            if task.route:
                self._find_place(task)
            else:
                self._settle(task)

    def device_lost(self, device: DeviceQueue) -> None:
        """End what runs on a device; its streams go to their fallback, or are lost with it."""
        device.lost = True
        self._note(device.name, "lost")
        for task in self._tasks:
            if task.route:
                if not task.lost:
                    self._lose_place(task, device)
                continue
            if task.occupant is not None and task.stranded:
                self._lifecycle.failed(task.occupant, "lost")
            if not task.lost and task.device is device:
                self._settle(task)

    def device_back(self, device: DeviceQueue) -> None:
        """Give a device that works again the streams that prefer it, empty."""
        device.lost = False
        self._note(device.name, "back")
        for task in self._tasks:
            if any(home.stand_in is device for home in task.route):
                self._find_place(task)
            elif not task.route and task.home.stand_in is device:
                self._move(task, device)

    def mode_entered(self, mode: Mode) -> None:
        """Let every task belong where the mode says, and what waits be ordered as it says."""
        for task in self._tasks:
            parameters = mode.parameters[task.index]
            self._shed(task, all_of_them=not parameters.runs)
            if parameters.runs and not task.route:
                task.home = self._devices[parameters.device]
                if not task.hung:
                    self._settle(task)
        for device in self._devices.values():
            device.renew(mode)

    def _shed(self, task: Task, *, all_of_them: bool) -> None:
        """Shed what has not begun: all jobs, or those that are late already."""
        now_ns = self._state.now_ns
        waiting = task.waiting
        while waiting and (all_of_them or waiting[0].due_ns < now_ns):
            self._lifecycle.end(waiting.popleft(), "shed", "mode")

    def _settle(self, task: Task) -> None:
        """Let what waits do so where the task belongs, or end it if that is nowhere."""
        place = task.home.stand_in
        if place is None:
            self._lose_waiting(task)
        else:
            self._move(task, place)

    def _move(self, task: Task, device: DeviceQueue) -> None:
        """Let jobs that have not begun run on another device."""
        task.go_to(device, self._state.now_ns)
        task.lost = task.hung = False
        self._lifecycle.offer(task)

    def _lose(self, task: Task) -> None:
        if task.occupant is not None:
            self._lifecycle.failed(task.occupant, "lost")
        self._lose_waiting(task)

    def _lose_waiting(self, task: Task) -> None:
        task.lost = True
        while task.waiting:
            job = task.waiting.popleft()
            self._lifecycle.due_unseen(job)
            self._lifecycle.end(job, "aborted", "lost")

    def _note(self, name: str, state: Literal["lost", "back"]) -> None:
        self._state.out.append(Record(ResourceRecord(name, self._state.now_ns, state)))

    # Tasks of several segments

    def _lose_place(self, task: Task, device: DeviceQueue) -> None:
        """Find a task of several segments other places than a device that is lost."""
        job = task.occupant
        if segments.is_cut_off(task):
            self._lose(task)
        elif job is not None and segments.rests_on(job, device):
            self._lifecycle.failed(job, "lost")
        elif job is not None and job.device is device:  # it waits for its next segment
            segments.send(job, self._state)
        elif job is None and (first := task.route[0].stand_in) is not None:
            self._move(task, first)

    def _find_place(self, task: Task) -> None:
        """Let a task of several segments run again once each of them has a place."""
        first = task.route[0].stand_in
        if first is not None and not segments.is_cut_off(task):
            task.lost = task.hung = False
            if task.occupant is None:
                self._move(task, first)
