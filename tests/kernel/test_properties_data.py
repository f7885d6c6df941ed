"""One property a rule: inputs, synchronised sets, publications, buffers, chains.

What is expected is computed anew from events, commands and records alone.
"""

import pytest
from builder import device, sampled, stage
from hypothesis import given
from hypothesis import strategies as st
from tracing import drive, walk

from avrt.model.commands import Dispatch, Publish, Reclaim, Record
from avrt.model.events import Arrived, Completed, Drain, Failed, Hung, Read, Voted
from avrt.model.records import ChainBroken, ChainRecord, JobRecord, SyncRecord
from avrt.model.spec import PipelineSpec, SourceSpec, SyncSpec
from pipelines import Arrival, Limits, Scenario, examples, scenarios

NO_SYNC = ("timer", "trigger", "trigger")


def binds_early(stage_spec):
    return stage_spec.redundancy is not None or stage_spec.publish == "at_deadline"


class Messages:
    """The live messages as events and commands tell of them, taken in call by call."""

    def __init__(self, trace):
        self.trace = trace
        self.jobs = trace.jobs()
        self.dispatches = trace.dispatches()
        self.producer = {}
        self.capture_ns = {}
        self.latest = {}
        self.live = set()

    def completed(self, event):
        job = self.jobs[event.job]
        self.producer[event.buffer] = job.stage
        self.capture_ns[event.buffer] = self.output_capture_ns(job)
        self.live.add(event.buffer)

    def arrived(self, event):
        self.producer[event.buffer] = event.source
        self.capture_ns[event.buffer] = event.capture_ns
        self.latest[event.source] = event.buffer
        self.live.add(event.buffer)

    def published(self, command):
        self.latest[self.producer[command.buffer]] = command.buffer

    def output_capture_ns(self, job):
        """An output is captured when its trigger or set was, or when its timer stage read."""
        spec = self.trace.stage_of(job.task)
        inputs = self.dispatches[job.job][1].inputs
        if spec.trigger is not None:
            names = [i.name for i in spec.inputs]
            return self.capture_ns[inputs[names.index(spec.trigger)]]
        if spec.sync is not None:
            return min((self.capture_ns[b] for b in inputs if b is not None), default=0)
        if spec.publish == "at_deadline":
            return job.release_ns
        return job.arrival_ns if spec.redundancy is not None else job.start_ns


# Inputs


@examples(60)
@given(scenarios(Limits(kinds=NO_SYNC, faults=False, same_instant=False)))
def test_sampled_inputs_are_the_newest_published_when_the_job_binds(scenario):
    """At first dispatch; at release where the stage is redundant or publishes at its deadline."""
    trace = drive(scenario)
    messages = Messages(trace)
    history = []  # the newest of each producer after each call
    for call in trace.calls:
        take_in(messages, call)
        history.append((call.at_ns, dict(messages.latest)))
        for command in call.commands:
            job = bound(messages, command)
            if job is None:
                continue
            spec = trace.stage_of(job.task)
            at_ns, newest = call.at_ns, messages.latest
            if binds_early(spec):
                at_ns = job.arrival_ns
                newest = [latest for t, latest in history if t <= at_ns][-1]
            judge_binding(messages, spec, job, at_ns, newest)


def take_in(messages, call):
    for event in call.events:
        if isinstance(event, Completed):
            messages.completed(event)
    for command in call.commands:
        if isinstance(command, Publish):
            messages.published(command)
    for event in call.events:
        if isinstance(event, Arrived):
            messages.arrived(event)


def bound(messages, command):
    """The job whose inputs this command shows to be bound or refused."""
    if isinstance(command, Dispatch):
        return messages.jobs[command.job]
    record = command.record if isinstance(command, Record) else None
    if isinstance(record, JobRecord) and record.reason in {"stale", "input_missing"}:
        return record
    return None


def judge_binding(messages, spec, job, at_ns, newest):
    dispatch = messages.dispatches.get(job.job)
    absent, refused = [], ""
    for place, item in enumerate(spec.inputs):
        if item.name == spec.trigger:
            if item.max_age_ns is None or dispatch is None:
                continue  # a job that was skipped does not show its trigger
            buffer = dispatch[1].inputs[place]
        else:
            buffer = newest.get(item.source)
        stale = (
            buffer is not None
            and item.max_age_ns is not None
            and at_ns - messages.capture_ns[buffer] > item.max_age_ns
        )
        usable = buffer is not None and not stale
        if not usable and item.optional:
            absent.append(item.name)
        elif not usable:
            refused = refused or ("stale" if stale else "input_missing")
        if dispatch is not None and not refused:
            assert dispatch[1].inputs[place] == (buffer if usable else None)
    if dispatch is not None:
        assert not refused
        assert job.absent == tuple(absent)
    elif not any(i.name == spec.trigger and i.max_age_ns for i in spec.inputs):
        assert job.reason == refused


# Synchronised sets


@st.composite
def synchronised(draw):
    """One synchronised stage that takes every set, complete or not."""
    sources = tuple(SourceSpec(name=f"s{i}", type="lidar") for i in range(3))
    readers = st.lists(st.sampled_from(sources), min_size=2, max_size=3)
    inputs = [sampled(source.name, optional=True) for source in draw(readers.map(dict.fromkeys))]
    while len(inputs) < 2:
        inputs.append(sampled("s0" if inputs[0].source != "s0" else "s1", optional=True))
    sync = SyncSpec(
        tolerance_ns=draw(st.sampled_from((0, 2, 6, 12))),
        timeout_ns=draw(st.sampled_from((0, 5, 20, 60))),
    )
    fuse = stage("fuse", *inputs, sync=sync, queue=1000, wcet_ns=1, deadline_ns=1000)
    spec = PipelineSpec(name="sets", devices=(device(),), sources=sources, stages=(fuse,))
    data = draw(st.binary(max_size=90))
    arrivals = [
        Arrival(data[i] % 3, data[i + 1] % 3, data[i + 2] % 40, 0)
        for i in range(0, len(data) - 2, 3)
    ]
    return Scenario(spec, costs=(1,), arrivals=tuple(arrivals))


@examples(60)
@given(synchronised())
def test_a_message_joins_the_earliest_open_set_within_tolerance_that_lacks_its_input(scenario):
    trace = drive(scenario)
    fuse = trace.spec.stages[0]
    expected, most = expected_sets(trace, fuse)
    jobs = sorted(trace.jobs().values(), key=lambda j: j.index)
    dispatched = {c.index: c.inputs for _, c in trace.commands if isinstance(c, Dispatch)}
    found = [(j.arrival_ns, j.release_ns, dispatched[j.index]) for j in jobs]
    assert found == expected
    assert most <= 8
    used = [handle for _, _, members in found for handle in members if handle is not None]
    assert len(used) == len(set(used))


def expected_sets(trace, fuse):
    """Sets as `(arrival, release, members)` in the order of their release, and the most open."""
    sets = Sets(fuse)
    for call in trace.calls:
        arrived = [e for e in call.events if isinstance(e, Arrived)]
        for event in sorted(arrived, key=lambda e: (e.source, e.sequence)):
            if event.source in sets.names:
                sets.offer(call.at_ns, event)
        sets.expire(call.at_ns)
    return sets.done, sets.most


class Sets:
    """The open sets of one stage, each `[number, members]`, looked through one by one."""

    def __init__(self, fuse):
        self.names = [i.source for i in fuse.inputs]
        self.sync = fuse.sync
        self.capture_ns = {}
        self.open, self.done = [], []
        self.opened = self.most = 0

    def times(self, members):
        return [self.capture_ns[m] for m in members if m is not None]

    def limit_ns(self, members):
        return min(self.times(members)) + self.sync.timeout_ns

    def close(self, entry, at_ns, release_ns):
        self.open.remove(entry)
        self.done.append((at_ns, release_ns, tuple(entry[1])))

    def expire(self, at_ns):
        for entry in sorted(self.open, key=lambda e: (self.limit_ns(e[1]), e[0])):
            if self.limit_ns(entry[1]) <= at_ns:
                self.close(entry, at_ns, self.limit_ns(entry[1]))

    def offer(self, at_ns, event):
        self.capture_ns[event.buffer] = event.capture_ns
        place = self.names.index(event.source)
        entry = self.fitting(place, event.capture_ns)
        entry[1][place] = event.buffer
        if len(self.open) > 8:
            first = min(self.open, key=lambda e: (min(self.times(e[1])), e[0]))
            self.close(first, at_ns, at_ns)
        complete = None not in entry[1]
        if entry in self.open and (complete or self.limit_ns(entry[1]) <= at_ns):
            self.close(entry, at_ns, at_ns)
        self.most = max(self.most, len(self.open))

    def fitting(self, place, capture_ns):
        """The earliest open set that the message fits, or a new one."""
        fits = []
        for entry in self.open:
            times = self.times(entry[1])
            spread_ns = max(*times, capture_ns) - min(*times, capture_ns)
            if entry[1][place] is None and spread_ns <= self.sync.tolerance_ns:
                fits.append((min(times), entry[0], entry))
        if fits:
            return min(fits)[2]
        self.opened += 1
        self.open.append([self.opened, [None] * len(self.names)])
        return self.open[-1]


@examples(40)
@given(synchronised())
def test_sets_are_within_tolerance_and_released_no_later_than_earliest_capture_plus_timeout(
    scenario,
):
    trace = drive(scenario)
    sync = trace.spec.stages[0].sync
    captures = {e.buffer: e.capture_ns for _, e in trace.events if isinstance(e, Arrived)}
    arrivals = {e.buffer: at for at, e in trace.events if isinstance(e, Arrived)}
    incomplete = 0
    jobs = trace.jobs()
    for _, command in trace.commands:
        if isinstance(command, Dispatch):
            members = [h for h in command.inputs if h is not None]
            times = [captures[h] for h in members]
            assert max(times) - min(times) <= sync.tolerance_ns
            last_ns = max(arrivals[h] for h in members)
            limit_ns = min(times) + sync.timeout_ns
            assert jobs[command.job].arrival_ns <= max(last_ns, limit_ns)
            incomplete += None in command.inputs
    assert incomplete == len(trace.records(SyncRecord))


# Publications and votes


@pytest.mark.parametrize("grain", [1, 4])
@examples(25)
@given(scenario=scenarios())
def test_a_publication_at_the_deadline_is_at_the_due_time_or_if_late_at_once(grain, scenario):
    trace = drive(scenario, grain)
    jobs = trace.jobs()
    decided = {}
    for at_ns, event in trace.events:
        if isinstance(event, Completed) and trace.stage_of(jobs[event.job].task).redundancy is None:
            decided[jobs[event.job].activation] = at_ns
        if isinstance(event, Voted) and event.buffer is not None:
            decided[event.activation] = at_ns
    for at_ns, command in trace.commands:
        if isinstance(command, Publish):
            job = jobs[command.buffer]
            assert command.activation == job.activation
            assert command.publish_ns == at_ns
            expected_ns = decided[command.activation]
            if trace.stage_of(job.task).publish == "at_deadline":
                due_ns = -(-job.due_ns // grain) * grain
                expected_ns = max(expected_ns, due_ns)
            assert at_ns == expected_ns


@examples(25)
@given(scenarios())
def test_what_is_met_or_late_is_published_once_and_nothing_else_is(scenario):
    trace = drive(scenario)
    plain = [j for j in trace.jobs().values() if trace.stage_of(j.task).redundancy is None]
    published = [c.buffer for _, c in trace.commands if isinstance(c, Publish)]
    wanted = {j.job for j in plain if j.outcome in {"met", "late"}}
    assert {b for b in published if b in {j.job for j in plain}} == wanted
    assert len(published) == len(set(published))


# Buffers


@pytest.mark.parametrize("grain", [1, 4])
@examples(40)
@given(scenario=scenarios())
def test_a_buffer_is_reclaimed_once_and_only_when_nobody_reads_it_any_more(grain, scenario):
    trace = drive(scenario, grain)
    live, unread, reading = set(), set(), {}
    producer = {}
    for ledger, call, command in walk_with_events(trace):
        if command is call:  # its events
            for event in call.events:
                note(trace, event, live, unread, producer)
            continue
        working = set(ledger.stream.values())
        if isinstance(command, Dispatch):
            given_handles = {h for h in command.inputs if h is not None}
            assert given_handles <= live
            reading[command.job] = given_handles
        if isinstance(command, Publish):
            assert command.buffer in live
            if producer[command.buffer] in scenario.recorded:
                unread.add(command.buffer)
        if isinstance(command, Reclaim):
            assert command.buffer in live
            live.remove(command.buffer)
            assert command.buffer not in unread
            assert not [job for job in working if command.buffer in reading[job]]
    assert live - unread == newest_of_sampled(trace)
    assert unread == set()


def walk_with_events(trace):
    previous = None
    for ledger, call, command in walk(trace):
        if call is not previous:
            yield ledger, call, call
            previous = call
        if command is not None:
            yield ledger, call, command


def note(trace, event, live, unread, producer):
    if isinstance(event, Arrived):
        live.add(event.buffer)
        producer[event.buffer] = event.source
        if event.source in trace.scenario.recorded:
            unread.add(event.buffer)
    if isinstance(event, Completed):
        live.add(event.buffer)
        producer[event.buffer] = trace.jobs()[event.job].stage
    if isinstance(event, Read):
        unread.remove(event.buffer)


def newest_of_sampled(trace):
    """What a consumer may still sample at the end of the run."""
    messages = Messages(trace)
    for call in trace.calls:
        take_in(messages, call)
    names = {
        item.source
        for s in trace.spec.stages
        for item in s.inputs
        if s.sync is None and item.name != s.trigger
    }
    return {buffer for name, buffer in messages.latest.items() if name in names}


# Chains


class Promises:
    """One chain watched with a plain loop over calls."""

    def __init__(self, chain):
        self.chain = chain
        self.newest_ns = self.known_ns = self.resting_ns = None
        self.open = {}
        self.outputs = []
        self.broken = []
        self.rests_on = {}  # buffer to the capture time of the head

    def arrived(self, event):
        if event.source == self.chain.path[0]:
            self.read(event.capture_ns)
            self.rests_on[event.buffer] = event.capture_ns

    def made(self, messages, event):
        """Note what the output of a job rests on along this chain."""
        job = messages.jobs[event.job]
        path = self.chain.path
        if job.stage == path[0]:
            self.rests_on[event.buffer] = messages.capture_ns[event.buffer]
        elif job.stage in path:
            before = path[path.index(job.stage) - 1]
            inputs = messages.trace.stage_of(job.task).inputs
            handles = messages.dispatches[job.job][1].inputs
            for item, handle in zip(inputs, handles, strict=True):
                if item.source == before and handle in self.rests_on:
                    self.rests_on[event.buffer] = self.rests_on[handle]

    def saw(self, at_ns, command, producer):
        if producer == self.chain.path[-1] and command.buffer in self.rests_on:
            self.published(at_ns, command.activation, self.rests_on[command.buffer])

    def read(self, capture_ns):
        """The head took something in; from the first time on an output is owed."""
        if self.newest_ns is None:
            self.open["reaction"] = [capture_ns, True]
        self.newest_ns = max(capture_ns, capture_ns if self.newest_ns is None else self.newest_ns)

    @property
    def awaited(self):
        """Whether something newer than what is known is on its way."""
        known_ns = self.known_ns
        return self.newest_ns is not None and (known_ns is None or self.newest_ns > known_ns)

    def published(self, at_ns, activation, capture_ns):
        reaction_ns = None
        if self.known_ns is None or capture_ns > self.known_ns:
            reaction_ns = None if self.known_ns is None else at_ns - self.known_ns
            self.known_ns = capture_ns
            self.open["reaction"] = [capture_ns, True]
        age_ns = None if self.resting_ns is None else at_ns - self.resting_ns
        self.resting_ns = capture_ns
        self.open["age"] = [capture_ns, True]
        self.outputs.append((at_ns, activation, reaction_ns, age_ns, at_ns - capture_ns))

    def judge(self, at_ns):
        limits = {"reaction": self.chain.reaction_ns, "age": self.chain.age_ns}
        for promise, watch in self.open.items():
            limit_ns = limits[promise]
            if limit_ns is not None and watch[1] and watch[0] + limit_ns <= at_ns:
                watch[1] = False
                self.broken.append((at_ns, promise, limit_ns, watch[0]))


@pytest.mark.parametrize("grain", [1, 3])
@examples(50)
@given(scenario=scenarios(Limits(stages_max=5, max_age=(None, None, 12))))
def test_reaction_age_and_path_are_those_of_a_count_over_publications(grain, scenario):
    trace = drive(scenario, grain)
    found = trace.records(ChainRecord)
    broken = trace.records(ChainBroken)
    for promises in counted(trace):
        name = promises.chain.name
        assert promises.outputs == [
            (r.at_ns, r.activation, r.reaction_ns, r.age_ns, r.path_ns)
            for r in found
            if r.chain == name
        ]
        assert sorted(promises.broken) == sorted(
            (r.at_ns, r.promise, r.limit_ns, r.capture_ns) for r in broken if r.chain == name
        )


def counted(trace):  # noqa: C901, PLR0912 - one loop a kind of event
    """The chains of a trace after a count over all its calls."""
    chains = [Promises(chain) for chain in trace.spec.chains]
    messages = Messages(trace)
    reads = [timer_reads(trace, chain.path[0]) for chain in trace.spec.chains]
    draining = False
    for call in trace.calls:
        for event in only(call.events, Completed):
            messages.completed(event)
            for promises in chains:
                promises.made(messages, event)
        for command in only(call.commands, Publish):
            for promises in chains:
                promises.saw(call.at_ns, command, messages.producer[command.buffer])
        for event in sorted(only(call.events, Arrived), key=lambda e: (e.source, e.sequence)):
            messages.arrived(event)
            for promises in chains:
                promises.arrived(event)
        for promises, (at_release, _) in zip(chains, reads, strict=True):
            for capture_ns in at_release.pop(call.at_ns, ()):
                promises.read(capture_ns)
        draining = draining or bool(only(call.events, Drain))
        for promises in chains:
            if not draining or promises.awaited:
                promises.judge(call.at_ns)
        for promises, (_, at_start) in zip(chains, reads, strict=True):
            for capture_ns in at_start.pop(call.at_ns, ()):
                promises.read(capture_ns)
    return chains


def timer_reads(trace, head):
    """What a timer stage reads: by time of release (bound early), and by time of first dispatch."""
    at_release, at_start = {}, {}
    stages = {stage.name: stage for stage in trace.spec.stages}
    for job in trace.jobs().values() if head in stages else ():
        spec = stages[head]
        if job.stage != head:
            continue
        if spec.publish == "at_deadline":
            at_release.setdefault(job.arrival_ns, []).append(job.release_ns)
        elif spec.redundancy is not None:
            at_release.setdefault(job.arrival_ns, []).append(job.arrival_ns)
        elif job.start_ns is not None:
            at_start.setdefault(job.start_ns, []).append(job.start_ns)
    return at_release, at_start


def only(items, kind):
    return [item for item in items if isinstance(item, kind)]


# Work that ends without a result


@examples(25)
@given(scenarios())
def test_work_that_fails_or_hangs_publishes_nothing(scenario):
    trace = drive(scenario)
    faulty = {e.job for _, e in trace.events if isinstance(e, Failed | Hung)}
    published = {c.buffer for _, c in trace.commands if isinstance(c, Publish)}
    assert not faulty & published
    assert all(trace.jobs()[job].outcome == "aborted" for job in faulty)
