"""A recorded run of stages with segments repeated: each segment takes what it took there."""

from dataclasses import replace

import pytest
from builder import Bench, device, stage, timer
from hypothesis import given
from test_properties_segments import segmented
from test_virtual import FROM_OUTSIDE, Script
from test_whatif import Lines, simulated
from tracing import drive

from avrt.config.changes import Changes, change_pipeline, cost_change, cost_rules
from avrt.drivers.execution import read_works
from avrt.drivers.recording import recorded_run
from avrt.drivers.virtual import VirtualLoop
from avrt.drivers.whatif import repeat
from avrt.errors import SpecError
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal, parse_entry
from avrt.metrics.changes import compare_jobs
from avrt.model.spec import SegmentSpec
from pipelines import Limits, examples

DEVICES = (device(), device("gpu"))


def parts(*times, wait="suspend"):
    """Segments on cpu and gpu by turns."""
    return tuple(
        SegmentSpec(device="cpu" if n % 2 == 0 else "gpu", wcet_ns=t, wait=wait if n else "suspend")
        for n, t in enumerate(times)
    )


def by_segment(run, spec):
    """What each segment of each job took, by task and index."""
    lines = []
    run(lambda _at_ns, line: lines.append(line))
    works = read_works([parse_entry(line) for line in lines], spec)
    return {(w.task, w.index): [p.received_ns for p in w.parts] for w in works}


@examples(60)
@given(segmented(Limits(recorded=False, endless=False)))
def test_a_run_is_repeated_call_for_call(scenario):
    """With losses, aborts, preemption, failures and slots that are kept."""
    scenario = replace(scenario, vote_delays=(0,))
    trace = drive(scenario, drain_last=True)
    feed = [(at, e) for at, e in trace.events if isinstance(e, FROM_OUTSIDE)]
    kept = Lines()
    spec, worker, until_ns = scenario.spec, Script(scenario), scenario.until_ns
    VirtualLoop(spec, Kernel(spec), iter(feed), worker, kept.journal, until_ns=until_ns).run()
    recorded = kept.recorded(spec)
    repeated = repeat(recorded, spec)
    assert repeated.digest == recorded.digest
    assert compare_jobs(recorded.log, repeated.log) == []


@examples(60)
@given(segmented(Limits(recorded=False, endless=False, faults=False)))
def test_so_is_one_whose_segments_each_took_a_time_of_their_own(scenario):
    """The tests' own driver draws a time for every segment, which the virtual loop never does."""
    scenario = replace(scenario, vote_delays=(0,))
    trace = drive(scenario, drain_last=True)
    journal_lines = []
    journal = Journal(lambda _at_ns, line: journal_lines.append(line))
    for call in trace.calls:
        journal.note(call.at_ns, call.events, call.commands)
    entries = [parse_entry(line) for line in journal_lines]
    recorded = recorded_run(scenario.spec, entries, "run")
    repeated = repeat(recorded, scenario.spec)
    assert repeated.digest == recorded.digest
    assert compare_jobs(recorded.log, repeated.log) == []


def uneven():
    """A pipeline whose middle part is the longest, and a run of ten jobs that took 10 to 12."""
    spec = Bench(
        stage("work", "lidar", segments=parts(2, 6, 2), wcet_ns=10, deadline_ns=30),
        stage("draw", "lidar", device="gpu", wcet_ns=3, deadline_ns=40),
        devices=DEVICES,
        periods={"lidar": 20},
    ).spec
    return spec, simulated(spec, 200, execution=lambda task, n: 10 + n % 3 if task == "work" else 3)


def test_each_segment_takes_what_it_took():
    spec, recorded = uneven()
    known = {(w.task, w.index): [p.received_ns for p in w.parts] for w in recorded.works.values()}
    again = by_segment(lambda write: repeat(recorded, spec, write=write), spec)
    assert again == known
    assert [known["work", index] for index in (0, 2)] == [[2, 6, 2], [2, 7, 3]]


def changed_cost(spec, *texts):
    return cost_change(cost_rules(spec, texts))


@pytest.mark.parametrize(
    ("text", "expected"), [("work=+100%", [4, 12, 4]), ("work=40ns", [8, 24, 8])]
)
def test_a_changed_cost_scales_the_segments(text, expected):
    spec, recorded = uneven()
    change = changed_cost(spec, text)
    took = by_segment(lambda write: repeat(recorded, spec, change_cost=change, write=write), spec)
    assert took["work", 0] == expected
    assert took["draw", 0] == [3]


def test_a_longer_segment_makes_the_misses_that_it_causes_appear_with_their_reason():
    """Draw waits for the gpu behind the middle part of work, and is late then."""
    spec, recorded = uneven()
    repeated = repeat(recorded, spec, change_cost=changed_cost(spec, "work=+900%"))
    changes = compare_jobs(recorded.log, repeated.log)
    assert {c.kind for c in changes} == {"appears"}
    first = next(change for change in changes if change.task == "draw")
    assert [(i.kind, i.by) for i in first.miss.intervals] == [("waiting", "work")]


def test_what_did_not_run_to_its_end_takes_the_worst_known_of_each_segment():
    """Aborted in its gpu part: that is known, the last one takes what is declared."""
    spec = Bench(
        timer("work", 50, segments=parts(2, 6, 5), wcet_ns=13, deadline_ns=6, on_miss="abort"),
        devices=DEVICES,
    ).spec
    recorded = simulated(spec, 50, execution=lambda _task, _index: 26)
    assert recorded.log.jobs["work", 0].outcome == "aborted"
    patient = replace(spec, stages=(replace(spec.stages[0], deadline_ns=50),))
    took = by_segment(lambda write: repeat(recorded, patient, write=write), patient)
    assert took == {("work", 0): [4, 12, 5]}
    assert repeat(recorded, patient).assumed == {("work", 0)}


def test_work_that_the_run_does_not_have_takes_the_worst_of_each_segment_there():
    spec = Bench(
        timer("work", 10, segments=parts(2, 2), wcet_ns=4, deadline_ns=10, on_miss="skip_next"),
        devices=DEVICES,
    ).spec
    recorded = simulated(spec, 40, execution=lambda _task, index: 12 + 2 * (index > 1))
    assert recorded.log.jobs["work", 1].outcome == "skipped"
    patient = replace(spec, stages=(replace(spec.stages[0], on_miss="continue"),))
    took = by_segment(lambda write: repeat(recorded, patient, write=write), patient)
    assert [took["work", index] for index in range(4)] == [[6, 6], [7, 7], [7, 7], [7, 7]]


# Changes


def test_a_changed_device_is_that_of_each_segment_or_of_all():
    spec, recorded = uneven()
    swapped = change_pipeline(spec, Changes(device=("work=gpu, cpu, gpu",)))
    assert [s.device for s in swapped.stage("work").segments] == ["gpu", "cpu", "gpu"]
    assert swapped.stage("work").device == "gpu"
    took = by_segment(lambda write: repeat(recorded, swapped, write=write), swapped)
    assert took["work", 0] == [2, 6, 2]
    together = change_pipeline(spec, Changes(device=("work=gpu",)))
    assert {s.device for s in together.stage("work").segments} == {"gpu"}
    assert repeat(recorded, together).log.jobs["work", 0].outcome == "met"


def test_a_changed_wcet_scales_the_declared_times_of_the_segments():
    spec, _ = uneven()
    changed = change_pipeline(spec, Changes(wcet=("work=20 ns",))).stage("work")
    assert (changed.wcet_ns, [s.wcet_ns for s in changed.segments]) == (20, [4, 12, 4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("work=gpu,cpu", r"device\.work: expected one device, or 3, found 2"),
        ("draw=gpu,cpu", r"device\.draw: expected one device, found 2"),
        ("work=gpu,,cpu", r"no device named ''"),
        ("work=gpu,cpu,tpu", r"stages\.work\.segments\.2\.device: no device named 'tpu'"),
    ],
)
def test_devices_that_do_not_fit_are_refused(text, message):
    spec, _ = uneven()
    with pytest.raises(SpecError, match=message):
        change_pipeline(spec, Changes(device=(text,)))


def test_segments_that_would_keep_their_own_device_are_refused():
    spec = Bench(
        stage("work", "lidar", segments=parts(2, 6, wait="spin"), wcet_ns=8), devices=DEVICES
    ).spec
    with pytest.raises(SpecError, match="it would keep a slot of gpu and wait for another"):
        change_pipeline(spec, Changes(device=("work=gpu",)))
