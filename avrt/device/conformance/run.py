"""Runs the conformance tests on devices and prints what came out, test by device."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from avrt import clock
from avrt.device.conformance import copies, failing, memory, ordering, virtual
from avrt.device.conformance.rig import NotRun, Rig
from avrt.errors import raised_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from avrt.device.base import Device

Outcome = Literal["passed", "FAILED", "not run"]


class Check(NamedTuple):
    """A test that every device has to pass.

    Attributes:
        slow: whether it takes longer than 0.25 s somewhere.
    """

    test: Callable[[Rig], None]
    slow: bool = False

    @property
    def name(self) -> str:
        """Say what a device must do."""
        return self.test.__name__.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a test ended on a device; the reason says why it failed or was not run."""

    name: str
    device: str
    outcome: Outcome
    reason: str = ""
    took_ns: int = 0


CHECKS = (
    Check(ordering.a_stream_is_a_fifo),
    Check(ordering.an_event_orders_two_streams),
    Check(ordering.an_unrecorded_event_is_complete),
    Check(ordering.a_wait_means_the_recording_of_that_moment),
    Check(ordering.a_query_tells_before_and_after),
    Check(ordering.polling_ends),
    Check(ordering.elapsed_time_is_at_least_the_work),
    Check(ordering.a_host_wait_times_out),
    Check(ordering.transitive_order_is_accepted),
    Check(ordering.a_host_wait_orders_what_follows),
    Check(ordering.a_missing_wait_is_found),
    Check(ordering.random_graphs_run_in_order, slow=True),
    Check(ordering.one_event_serves_a_storm_of_recordings),
    Check(ordering.many_launches_do_not_grow, slow=True),
    Check(ordering.closing_finishes_what_is_queued),
    Check(ordering.closing_at_once_leaves_nobody_waiting),
    Check(ordering.a_priority_reaches_the_device),
    Check(failing.an_error_is_kept_and_what_follows_is_skipped),
    Check(failing.an_error_travels_with_an_event),
    Check(failing.the_first_error_is_kept),
    Check(failing.a_reset_lets_the_stream_go_on),
    Check(memory.freeing_twice_raises),
    Check(memory.use_after_free_raises),
    Check(memory.reuse_on_the_same_stream_is_immediate),
    Check(memory.reuse_on_another_stream_waits),
    Check(memory.without_the_guard_reuse_is_caught_and_does_harm),
    Check(memory.freed_memory_is_poisoned_in_debug_mode),
    Check(memory.memory_of_a_failed_stream_is_as_good_as_any),
    Check(memory.the_bound_of_memory_holds),
    Check(memory.memory_freed_under_a_side_stream_stays_right, slow=True),
    Check(copies.a_copy_has_the_content),
    Check(copies.a_staging_slot_is_not_reused_before_its_event),
    Check(copies.borrowed_slots_run_out_and_come_back),
    Check(copies.small_copies_are_packed_into_one),
    Check(copies.a_result_is_never_read_before_its_copy_ended, slow=True),
    Check(copies.a_failed_copy_harms_no_other),
    Check(copies.a_copy_goes_from_device_to_device),
    Check(virtual.the_same_calls_give_the_same_log),
    Check(virtual.two_engines_overlap),
    Check(virtual.one_engine_serialises),
    Check(virtual.a_deadlock_is_told_at_once),
    Check(virtual.injected_faults_are_errors_of_the_stream),
    Check(virtual.what_is_slowed_down_costs_more),
)


def run(
    make_device: Callable[[], Device], name: str, checks: Iterable[Check] = CHECKS
) -> list[Verdict]:
    """Run tests, each on a fresh device; where none can be made, none is run."""
    unmade = raised_by(lambda: make_device().close(0, drain=True))
    if unmade is not None:
        return [Verdict(check.name, name, "not run", str(unmade)) for check in checks]
    return [run_check(check, make_device, name) for check in checks]


def run_check(check: Check, make_device: Callable[[], Device], name: str) -> Verdict:
    """Run one test."""
    rig = Rig(make_device)
    start_ns = clock.now_ns()
    raised = raised_by(lambda: check.test(rig))
    took_ns = clock.now_ns() - start_ns
    unclosed = raised_by(rig.close)
    if isinstance(raised, NotRun):
        return Verdict(check.name, name, "not run", str(raised), took_ns)
    error = raised or unclosed
    if error is None:
        return Verdict(check.name, name, "passed", "", took_ns)
    return Verdict(check.name, name, "FAILED", _told(error), took_ns)


def _told(error: BaseException) -> str:
    """Return what was raised, and where."""
    places = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {place.filename}:{place.lineno}" for place in places)
    return f"{type(error).__name__}: {error}{where}"


def failed(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the tests that failed."""
    return [verdict for verdict in verdicts if verdict.outcome == "FAILED"]


def table(verdicts: Sequence[Verdict]) -> str:
    """Return a table of tests by device, then the count of each outcome and every reason."""
    devices = list(dict.fromkeys(verdict.device for verdict in verdicts))
    names = list(dict.fromkeys(verdict.name for verdict in verdicts))
    outcomes = {(v.name, v.device): v.outcome for v in verdicts}
    width = max(map(len, names), default=0)
    lines = [" ".join([" " * width, *(f"{device:>10}" for device in devices)])]
    lines += [
        " ".join([f"{name:{width}}", *(f"{outcomes.get((name, d), ''):>10}" for d in devices)])
        for name in names
    ]
    return "\n".join([*lines, "", *_counts(devices, verdicts), "", *_reasons(verdicts)]).rstrip()


def _counts(devices: list[str], verdicts: Sequence[Verdict]) -> list[str]:
    lines = []
    for device in devices:
        outcomes = [verdict.outcome for verdict in verdicts if verdict.device == device]
        lines.append(
            f"{device}: {outcomes.count('passed')} passed, {outcomes.count('FAILED')} FAILED, "
            f"{outcomes.count('not run')} not run"
        )
    return lines


def _reasons(verdicts: Sequence[Verdict]) -> list[str]:
    """Return each reason once, with the tests that it holds for unless it holds for all."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.reason:
            key = (verdict.device, verdict.outcome, verdict.reason)
            grouped.setdefault(key, []).append(verdict.name)
    return [
        f"{device}: {outcome} ({reason}): {', '.join(names) if len(names) < 10 else len(names)}"
        for (device, outcome, reason), names in grouped.items()
    ]
