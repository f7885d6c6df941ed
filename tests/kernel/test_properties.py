"""One property a rule: jobs, due times, slots, order, budgets, windows, shedding, losses.

What is expected is computed anew from events, commands and records alone.
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from tracing import Ledger, World, drive, walk

from avrt.model.commands import Abort, Dispatch, Preempt, Record, Resume
from avrt.model.events import Completed, DeviceBack, DeviceLost, Failed, Hung, StreamLost
from avrt.model.graph import release_periods
from avrt.model.records import JobRecord, MissRecord, OverrunRecord, WindowRecord
from avrt.model.spec import Criticality
from pipelines import ONLINE, Limits, examples, scenarios

QM = (Criticality.QM,)
LASTING = {"faults": False, "failures": False}
REASONS = {
    "met": {""},
    "late": {""},
    "aborted": {"deadline", "failure", "hang", "budget", "lost"},
    "skipped": {"busy", "input_missing", "stale"},
    "shed": {"overload", "queue_full"},
}


# What is expected, from the records


def key_of(trace, job, received_ns=0):
    """The policy's key of a job, and its place among equals."""
    stage = trace.stage_of(job.task)
    latest_start_ns = job.due_ns - max(0, stage.wcet_ns - received_ns)
    match trace.spec.policy:
        case "edf":
            key = (job.due_ns,)
        case "rm":
            key = (release_periods(trace.spec)[stage.name], job.release_ns)
        case "dm":
            key = (stage.deadline_ns, job.release_ns)
        case "fp":
            key = (stage.priority, job.release_ns)
        case "llf":
            key = (latest_start_ns,)
        case "fifo":
            key = (job.release_ns,)
    return key


class Watcher:
    """Which jobs are released and open at a place of the trace."""

    def __init__(self, trace):
        self.trace = trace
        self.jobs = trace.jobs()
        self.by_task = {}
        self.places = {name: i for i, name in enumerate(trace.task_names())}
        for job in sorted(self.jobs.values(), key=lambda j: j.index):
            self.by_task.setdefault(job.task, []).append(job)

    def waiting(self, ledger, at_ns, task):
        """Jobs of a task that are released, not started and not ended, oldest first."""
        return [
            job
            for job in self.by_task.get(task, ())
            if job.arrival_ns <= at_ns
            and job.job not in ledger.ended
            and job.job not in ledger.task
        ]

    def eligible(self, ledger, at_ns, device):
        """Jobs that could be put on a slot of this device now."""
        ready = [self.jobs[job] for job, place in ledger.paused.items() if place == device]
        for task in self.by_task:
            if self.trace.home(task) == device and task not in ledger.stream:
                ready += self.waiting(ledger, at_ns, task)[:1]
        return ready

    def order(self, ledger, at_ns, job):
        key = key_of(self.trace, job, ledger.received_ns(job.job, at_ns))
        return (key, self.places[job.task], job.index)

    def latest_start_ns(self, ledger, at_ns, job):
        wcet_ns = self.trace.stage_of(job.task).wcet_ns
        return job.due_ns - max(0, wcet_ns - ledger.received_ns(job.job, at_ns))


# Outcomes


@examples(30)
@given(scenarios())
def test_every_released_job_ends_exactly_once(scenario):
    world = World(scenario)
    trace = world.run()
    records = trace.records(JobRecord)
    assert sorted(r.job for r in records) == list(range(len(records)))
    for task in trace.task_names():
        indices = sorted(r.index for r in records if r.task == task)
        assert indices == list(range(len(indices)))
    assert all(r.reason in REASONS[r.outcome] for r in records)
    assert trace.working == ()
    assert not any(task.busy for task in world.kernel._tasks.values())
    assert not any(world.kernel._state.underway.values())


@examples(25)
@given(scenarios())
def test_a_driver_that_wakes_late_loses_no_job_either(scenario):
    trace = drive(scenario, grain=4)
    records = trace.records(JobRecord)
    assert sorted(r.job for r in records) == list(range(len(records)))
    assert trace.working == ()
    completed = {e.job for _, e in trace.events if isinstance(e, Completed)}
    assert {r.job for r in records if r.outcome in {"met", "late"}} <= completed


@examples(30)
@given(scenarios(Limits(faults=False)))
def test_a_miss_is_raised_at_the_due_time_while_the_job_is_open(scenario):
    trace = drive(scenario)
    misses = {}
    for record in trace.records(MissRecord):
        assert record.job not in misses
        misses[record.job] = record.at_ns
    for job in trace.jobs().values():
        known_ns = max(job.due_ns, job.arrival_ns)
        open_then = job.end_ns > known_ns or job.outcome == "late" or job.reason == "deadline"
        if open_then:
            assert misses.get(job.job) == known_ns
        elif job.end_ns < known_ns or job.outcome == "met":
            assert job.job not in misses


@examples(25)
@given(scenarios(Limits(same_instant=False)))
def test_a_completion_up_to_and_at_the_due_time_is_met_and_later_is_late(scenario):
    for job in drive(scenario).jobs().values():
        if job.outcome == "met":
            assert job.end_ns <= job.due_ns
        if job.outcome == "late":
            assert job.end_ns > job.due_ns


@examples(30)
@given(scenarios())
def test_intervals_of_a_miss_partition_its_time_and_running_is_what_it_received(scenario):
    for grain in (1, 3):
        trace = drive(scenario, grain)
        for ledger, call, command in walk(trace):
            if not isinstance(command, Record) or not isinstance(command.record, MissRecord):
                continue
            miss = command.record
            assert miss.at_ns == call.at_ns
            edges = [miss.release_ns, *(i.end_ns for i in miss.intervals)]
            assert edges == [*(i.start_ns for i in miss.intervals), miss.at_ns]
            assert all(a < b for a, b in pairwise(edges))
            ran = [i for i in miss.intervals if i.kind == "running"]
            assert all((i.by, i.job) == (miss.task, miss.job) for i in ran)
            received_ns = ledger.received_ns(miss.job, call.at_ns)
            assert sum(i.end_ns - i.start_ns for i in ran) == received_ns


@examples(25)
@given(scenarios(Limits(policies=("edf", "rm", "dm", "fp", "fifo"), fallback=False)))
def test_each_interval_of_a_miss_names_who_held_the_slot(scenario):
    trace = drive(scenario)
    whole = Ledger.of(trace)
    watcher = Watcher(trace)
    slots = {d.name: d.slots for d in trace.spec.devices}
    dispatches = trace.dispatches()
    for miss in trace.records(MissRecord):
        device = trace.home(miss.task)
        mine = order_of(watcher, watcher.jobs[miss.job])
        for interval in miss.intervals:
            holders = [
                watcher.jobs[job]
                for job, stretches in whole.stretches.items()
                if dispatches[job][1].device == device
                and any(a <= interval.start_ns < b for a, b in stretches)
            ]
            own = [j for j in holders if j.task == miss.task]
            if own:
                kind = "running" if own[0].job == miss.job else "waiting"
                assert (interval.kind, interval.job) == (kind, own[0].job)
            elif len(holders) < slots[device]:
                assert (interval.kind, interval.by, interval.job) == ("waiting", "", None)
            else:
                worst = max(holders, key=lambda j: order_of(watcher, j))
                kind = "blocking" if order_of(watcher, worst) > mine else "waiting"
                assert (interval.kind, interval.job) == (kind, worst.job)


def order_of(watcher, job):
    return (key_of(watcher.trace, job), watcher.places[job.task], job.index)


# Slots and streams


@examples(25)
@given(scenarios())
def test_never_more_jobs_on_a_device_than_slots_nor_on_a_stream_than_one(scenario):
    trace = drive(scenario)
    slots = {d.name: d.slots for d in trace.spec.devices}
    for ledger, call, command in walk(trace):
        if isinstance(command, Dispatch):
            assert command.task not in ledger.stream
            assert command.stream == command.task
        if isinstance(command, Dispatch | Resume):
            device = command.device if isinstance(command, Dispatch) else ledger.device[command.job]
            assert len(ledger.on(device)) < slots[device], call


@examples(25)
@given(scenarios(Limits(preemptive=(False,))))
def test_on_a_device_that_is_not_preemptive_work_runs_from_start_to_end(scenario):
    trace = drive(scenario)
    assert not [c for _, c in trace.commands if isinstance(c, Preempt | Resume)]
    assert all(len(stretches) == 1 for stretches in Ledger.of(trace).stretches.values())


@pytest.mark.parametrize("policy", ONLINE)
@examples(12)
@given(data=scenarios(Limits(criticality=QM, same_instant=False, fallback=False)))
def test_each_dispatch_takes_the_first_ready_job_of_the_total_order(policy, data):
    trace = drive(with_policy(data, policy))
    watcher = Watcher(trace)
    for ledger, call, command in walk(trace):
        if isinstance(command, Dispatch | Resume):
            job = watcher.jobs[command.job]
            device = trace.home(job.task)
            ready = watcher.eligible(ledger, call.at_ns, device)
            assert job == min(ready, key=lambda j: watcher.order(ledger, call.at_ns, j))


@pytest.mark.parametrize("policy", ONLINE)
@examples(10)
@given(data=scenarios(Limits(criticality=QM, same_instant=False, preemptive=(True,), **LASTING)))
def test_on_a_preemptive_device_no_ready_job_is_ordered_before_a_running_one(policy, data):
    trace = drive(with_policy(data, policy))
    watcher = Watcher(trace)
    for ledger, at_ns in ends_of_instants(trace):
        for device in trace.spec.devices:
            running = [watcher.jobs[job] for job in ledger.on(device.name)]
            for job in watcher.eligible(ledger, at_ns, device.name):
                key = watcher.order(ledger, at_ns, job)[0]
                assert all(key >= watcher.order(ledger, at_ns, r)[0] for r in running)


@examples(25)
@given(scenarios(Limits(same_instant=False, faults=False)))
def test_no_slot_is_free_while_a_job_could_use_it(scenario):
    trace = drive(scenario)
    watcher = Watcher(trace)
    for ledger, at_ns in ends_of_instants(trace):
        for device in trace.spec.devices:
            if len(ledger.on(device.name)) < device.slots:
                assert watcher.eligible(ledger, at_ns, device.name) == []


@examples(25)
@given(scenarios())
def test_the_jobs_of_a_task_start_in_release_order(scenario):
    started = {}
    for _, command in drive(scenario).commands:
        if isinstance(command, Dispatch):
            assert command.index > started.get(command.task, -1)
            started[command.task] = command.index


def with_policy(scenario, policy):
    return replace(scenario, spec=replace(scenario.spec, policy=policy))


def ends_of_instants(trace):
    """Yield the ledger after the last command of each instant."""
    calls = iter([*trace.calls[1:], None])
    following = next(calls)
    for ledger, call, command in walk(trace):
        if command is None:
            if following is None or following.at_ns > call.at_ns:
                yield ledger, call.at_ns
            following = next(calls, None)


# Releases


@pytest.mark.parametrize("grain", [1, 7])
@examples(20)
@given(scenario=scenarios(Limits(kinds=("timer", "timer", "trigger"))))
def test_timer_releases_are_nominal_whenever_the_driver_wakes(grain, scenario):
    trace = drive(scenario, grain)
    jobs = trace.jobs().values()
    for task in trace.task_names():
        stage = trace.stage_of(task)
        if stage.period_ns is not None:
            nominal = range(stage.offset_ns, trace.drained_ns + 1, stage.period_ns)
            mine = [j for j in jobs if j.task == task]
            assert sorted(j.release_ns for j in mine) == list(nominal)
            for job in mine:
                assert job.due_ns == job.release_ns + stage.deadline_ns
                assert job.arrival_ns == -(-job.release_ns // grain) * grain


@examples(20)
@given(scenarios(Limits(policies=("edf",), preemptive=(False,), publish=("asap",))))
def test_waking_late_changes_no_release_and_no_due_time_of_a_timer(scenario):
    def releases(trace):
        timers = {s.name for s in trace.spec.stages if s.period_ns is not None}
        limit_ns = scenario.until_ns
        return sorted(
            (j.task, j.index, j.release_ns, j.due_ns)
            for j in trace.jobs().values()
            if j.stage in timers and j.release_ns <= limit_ns
        )

    assert releases(drive(scenario)) == releases(drive(scenario, grain=5))


@examples(25)
@given(scenarios(Limits(on_miss=("continue",), queue=(1, 2), criticality=QM)))
def test_a_full_queue_sheds_its_oldest_job(scenario):
    trace = drive(scenario)
    watcher = Watcher(trace)
    for ledger, call, command in walk(trace):
        if command is None:
            for task in trace.task_names():
                limit = trace.stage_of(task).queue
                known = watcher.waiting(ledger, call.at_ns, task)
                earlier = [j for j in known if j.arrival_ns < call.at_ns]
                assert len(earlier) <= limit
        elif is_ending(command, "queue_full"):
            job = command.record
            waiting = watcher.waiting(ledger, call.at_ns, job.task)
            assert waiting[0].job == job.job
            assert len(waiting) > trace.stage_of(job.task).queue


@examples(25)
@given(scenarios(Limits(on_miss=("skip_next",), same_instant=False, **LASTING)))
def test_skip_next_drops_the_new_release_and_only_while_the_task_is_busy(scenario):
    trace = drive(scenario)
    watcher = Watcher(trace)
    for ledger, call, command in walk(trace):
        if is_ending(command, "busy"):
            job = command.record
            assert job.arrival_ns == call.at_ns
            older = [
                j for j in watcher.waiting(ledger, call.at_ns, job.task) if j.index < job.index
            ]
            assert older or job.task in ledger.stream
    for task, jobs in watcher.by_task.items():
        kept = [j for j in jobs if j.reason not in {"busy", "stale", "input_missing"}]
        assert all(a.end_ns <= b.arrival_ns for a, b in pairwise(kept)), task


def is_ending(command, reason):
    record = command.record if isinstance(command, Record) else None
    return isinstance(record, JobRecord) and record.reason == reason


# Aborts and budgets


@pytest.mark.parametrize("grain", [1, 5])
@examples(20)
@given(scenario=scenarios(Limits(on_miss=("abort",))))
def test_abort_lets_no_late_result_through(grain, scenario):
    trace = drive(scenario, grain)
    assert not [j for j in trace.jobs().values() if j.outcome == "late"]
    for job in trace.jobs().values():
        if job.reason == "deadline":
            assert job.end_ns >= job.due_ns


@examples(25)
@given(scenarios())
def test_aborted_work_stops_at_once_only_where_the_device_is_preemptive(scenario):
    trace = drive(scenario)
    preemptive = {d.name for d in trace.spec.devices if d.preemptive}
    dispatches = trace.dispatches()
    ended = [(at, e.job) for at, e in trace.events if isinstance(e, Completed | Failed | Hung)]
    for at_ns, command in trace.commands:
        if isinstance(command, Abort):
            later = [job for end_ns, job in ended if job == command.job and end_ns >= at_ns]
            if dispatches[command.job][1].device in preemptive:
                assert later == []
            elif not scenario.faults and not trace_lost(trace, command.job):
                assert later == [command.job]


def trace_lost(trace, job):
    task = trace.jobs()[job].task
    return any(isinstance(e, Hung) and trace.jobs()[e.job].task == task for _, e in trace.events)


@pytest.mark.parametrize("grain", [1, 4])
@examples(25)
@given(scenario=scenarios())
def test_every_result_is_either_wanted_or_discarded(grain, scenario):
    trace = drive(scenario, grain)
    discarded = [c.job for _, c in trace.commands if type(c).__name__ == "Discard"]
    jobs = trace.jobs()
    completed = [e.job for _, e in trace.events if isinstance(e, Completed)]
    unwanted = [job for job in completed if jobs[job].outcome not in {"met", "late"}]
    assert sorted(discarded) == sorted(unwanted)


@examples(30)
@given(scenarios(Limits(same_instant=False, endless=False)))
def test_an_overrun_is_told_exactly_when_the_budget_is_spent_and_the_job_is_open(scenario):
    trace = drive(scenario)
    whole = Ledger.of(trace)
    told = {r.job: r.at_ns for r in trace.records(OverrunRecord)}
    for job in trace.jobs().values():
        stage = trace.stage_of(job.task)
        budget_ns = stage.budget_ns or stage.wcet_ns
        spent_ns = instant_of(whole.stretches[job.job], budget_ns)
        if spent_ns is None or job.end_ns < spent_ns:
            assert job.job not in told
        elif job.end_ns > spent_ns or job.reason == "budget":
            assert told.get(job.job) == spent_ns
        else:
            assert job.job not in told
        if job.reason == "budget":
            assert stage.on_overrun == "abort"


def instant_of(stretches, budget_ns):
    """When a job with these stretches had received its budget, or None."""
    for start_ns, end_ns in stretches:
        if budget_ns <= end_ns - start_ns:
            return start_ns + budget_ns
        budget_ns -= end_ns - start_ns
    return None


@examples(15)
@given(scenarios(Limits(budget=(1, 2, 3), on_overrun=("report", "abort"))))
def test_no_overrun_is_lost_on_a_driver_that_wakes_late(scenario):
    trace = drive(scenario, grain=4)
    told = {r.job for r in trace.records(OverrunRecord)}
    for job in trace.jobs().values():
        stage = trace.stage_of(job.task)
        if job.outcome in {"met", "late"} and job.executed_ns > (stage.budget_ns or stage.wcet_ns):
            assert job.job in told
            assert stage.on_overrun == "report"


# Weakly-hard windows


@pytest.mark.parametrize("grain", [1, 5])
@examples(25)
@given(scenario=scenarios(Limits(windows=((0, 1), (1, 2), (1, 3), (2, 5)))))
def test_a_window_is_violated_exactly_when_a_count_over_all_windows_says_so(grain, scenario):
    trace = drive(scenario, grain)
    known = {}
    expected = []
    for at_ns, command in trace.commands:
        record = command.record if isinstance(command, Record) else None
        missed = isinstance(record, MissRecord)
        if missed or (isinstance(record, JobRecord) and record.outcome != "met"):
            job = trace.jobs()[record.job]
            misses = known.setdefault(job.task, set())
            if job.index not in misses:
                misses.add(job.index)
                stage = trace.stage_of(job.task)
                if violated(misses, job.index, stage.misses_max, stage.window_jobs):
                    expected.append((at_ns, job.task, job.index))
    found = trace.records(WindowRecord)
    assert [(r.at_ns, r.task) for r in found] == [(at_ns, task) for at_ns, task, _ in expected]
    for record, (_, _, index) in zip(found, expected, strict=True):
        assert index in record.misses
        assert len(record.misses) == record.misses_max + 1
        assert record.misses[-1] - record.misses[0] < record.window_jobs


def violated(misses, index, misses_max, window_jobs):
    return any(
        sum(first <= miss < first + window_jobs for miss in misses) > misses_max
        for first in range(index - window_jobs + 1, index + 1)
    )


# Criticality


@examples(50)
@given(scenarios(Limits(same_instant=False, fallback=False, slots_max=2)))
def test_on_the_last_free_slot_a_more_critical_job_goes_before_one_that_endangers_it(scenario):
    trace = drive(scenario)
    watcher = Watcher(trace)
    slots = {d.name: d.slots for d in trace.spec.devices}
    preempted = False
    for ledger, call, command in walk(trace):
        if isinstance(command, Dispatch | Resume):
            job = watcher.jobs[command.job]
            device = trace.home(job.task)
            ready = watcher.eligible(ledger, call.at_ns, device)
            choice = min(ready, key=lambda j: watcher.order(ledger, call.at_ns, j))
            last = len(ledger.on(device)) + 1 == slots[device]
            expected = choice
            if last and not preempted:
                expected = urgent(watcher, ledger, call.at_ns, ready, choice) or choice
            assert job == expected
        preempted = isinstance(command, Preempt)


def urgent(watcher, ledger, at_ns, ready, choice):
    """The job that goes instead of the policy's choice, or None."""
    stages = watcher.trace.stage_of
    mine = stages(choice.task)
    higher = [j for j in ready if stages(j.task).criticality > mine.criticality]
    if not higher:
        return None

    def latest(job):
        latest_ns = watcher.latest_start_ns(ledger, at_ns, job)
        return (latest_ns, watcher.places[job.task], job.index)

    first = min(higher, key=latest)
    return first if at_ns + mine.wcet_ns > latest(first)[0] else None


@examples(40)
@given(scenarios(Limits(same_instant=False, fallback=False, devices_max=1)))
def test_a_displaced_job_is_shed_when_its_own_latest_start_has_passed(scenario):
    trace = drive(scenario)
    for job in trace.jobs().values():
        if job.reason == "overload":
            latest_ns = job.due_ns - trace.stage_of(job.task).wcet_ns
            assert job.start_ns is None
            assert job.end_ns > latest_ns
            others = [j for j in trace.jobs().values() if j.start_ns is not None]
            displacing = [
                j
                for j in others
                if j.start_ns <= job.end_ns
                and trace.stage_of(j.task).criticality > trace.stage_of(job.task).criticality
            ]
            assert displacing


@examples(20)
@given(scenarios(Limits(criticality=QM)))
def test_nothing_is_shed_for_overload_where_all_are_equally_critical(scenario):
    assert not [j for j in drive(scenario).jobs().values() if j.reason == "overload"]


# Losses


@examples(50)
@given(scenarios())
def test_jobs_run_on_the_first_device_of_their_fallbacks_that_is_not_lost(scenario):
    trace = drive(scenario)
    lost = set()
    for ledger, call, command in walk(trace):
        for event in call.events:
            if isinstance(event, DeviceLost):
                lost.add(event.device)
            if isinstance(event, DeviceBack):
                lost.discard(event.device)
        if isinstance(command, Dispatch):
            places = fallbacks(trace.spec, trace.home(command.task))
            assert command.device == next(place for place in places if place not in lost)
        if command is None:
            assert not [job for job, device in ledger.device.items() if device in lost]


def fallbacks(spec, name):
    places = []
    while name is not None and name not in places:
        places.append(name)
        name = spec.device(name).fallback
    return places


@examples(40)
@given(scenarios())
def test_a_lost_stream_ends_what_is_on_it_and_takes_nothing_until_its_device_is_back(scenario):
    trace = drive(scenario)
    jobs = trace.jobs()
    home = {task: trace.home(task) for task in trace.task_names()}
    lost_since = {}
    for call in trace.calls:
        for event in sorted(call.events, key=lambda e: not isinstance(e, StreamLost)):
            if isinstance(event, StreamLost):
                lost_since.setdefault(event.stream, call.at_ns)
            if isinstance(event, DeviceBack | DeviceLost):
                for task in list(lost_since):
                    if event.device in fallbacks(trace.spec, home[task]):
                        del lost_since[task]
        for task in lost_since:
            assert not [c for c in call.commands if isinstance(c, Dispatch) and c.task == task]
            for command in call.commands:
                if is_ending(command, "lost"):
                    assert jobs[command.record.job].outcome == "aborted"
