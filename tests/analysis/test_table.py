"""A time-triggered table is right when every start finds its slot free and its job in time."""

from dataclasses import replace

import pytest
from builder import device, stage, timer

from avrt.analysis.schedulability import analyse, meets
from avrt.analysis.table import outcomes, table_faults
from avrt.model.graph import check
from avrt.model.spec import (
    PipelineSpec,
    RedundancySpec,
    SourceSpec,
    SyncSpec,
    TableRow,
    TableSpec,
)

FAST = timer("fast", 10, wcet_ns=2, deadline_ns=5)
SLOW = timer("slow", 20, wcet_ns=6, deadline_ns=20)


def pipeline(*stages, cycle=20, slots=1, **starts):
    """A checked pipeline with a table; sources send every 20 ns."""
    made = {s.name for s in stages}
    read = [i.source for s in stages for i in s.inputs if i.source not in made]
    rows = tuple(
        TableRow(task=task.replace("_", "."), starts_ns=times) for task, times in starts.items()
    )
    spec = PipelineSpec(
        name="p",
        policy="table",
        devices=(device(slots=slots),),
        sources=tuple(
            SourceSpec(name=name, type="lidar", period_ns=20) for name in dict.fromkeys(read)
        ),
        stages=stages,
        table=TableSpec(cycle_ns=cycle, rows=rows),
    )
    check(spec)
    return spec


def faults(spec):
    return [f"{task}: {what}" for task, what in table_faults(spec, spec.table)]


def worst(spec):
    found = outcomes(spec, spec.table)
    return {name: (o.response_ns, o.slack_ns) if o else None for name, o in found.items()}


def test_a_right_table_has_no_faults_and_shows_exact_responses():
    spec = pipeline(FAST, SLOW, fast=(0, 10), slow=(2,))
    assert faults(spec) == []
    assert worst(spec) == {"fast": (2, 3), "slow": (8, 12)}
    labels = {(f.response.ns, f.response.label, f.verdict) for f in analyse(spec).stages}
    assert labels == {(2, "exact", "meets"), (8, "exact", "meets")}


def test_two_jobs_on_one_slot_are_told():
    spec = pipeline(FAST, SLOW, fast=(0, 10), slow=(1,))
    assert faults(spec) == ["slow: no slot of cpu is free at 1 ns"]
    assert faults(pipeline(FAST, SLOW, slots=2, fast=(0, 10), slow=(1,))) == []


def test_what_runs_over_the_end_of_the_cycle_meets_the_next_one():
    patient = replace(SLOW, deadline_ns=30)
    spec = pipeline(FAST, patient, fast=(0, 10), slow=(15,))
    assert faults(spec) == ["fast: no slot of cpu is free at 0 ns"]


def test_a_start_while_the_job_before_still_runs_is_told_however_many_slots_there_are():
    spec = pipeline(FAST, SLOW, slots=3, fast=(0, 1), slow=(3,))
    assert "fast: its start at 1 ns comes before the job before it has ended" in faults(spec)


def test_a_start_too_late_or_missing_is_told():
    (fault,) = faults(pipeline(FAST, fast=(0, 14)))
    assert fault == "fast: done up to 6 ns after its release, due 5 ns after"
    (fault,) = faults(pipeline(FAST, fast=(0,)))
    assert fault == "fast: 2 releases a cycle have 1 of the starts they need"
    (fault,) = faults(pipeline(FAST, cycle=15, fast=(0, 10)))
    assert fault == "fast: its period of 10 ns does not divide the cycle of 15 ns"


def test_a_wrong_table_gives_no_figure():
    spec = pipeline(FAST, fast=(0, 14))
    assert not meets(spec)
    assert analyse(spec).verdict == "unknown"


def test_more_starts_than_releases_are_taken_as_they_are_needed():
    assert worst(pipeline(FAST, fast=(0, 4, 10, 14))) == {"fast": (2, 3)}


def test_a_row_that_begins_with_the_release_of_the_cycle_before_is_followed_round():
    """Ready at 12 of each cycle it starts at 3 of the next."""
    late = timer("late", 20, offset_ns=12, wcet_ns=2, deadline_ns=15)
    assert worst(pipeline(late, late=(3,))) == {"late": (13, 2)}


def test_along_triggers_a_response_counts_from_the_earliest_publication():
    scan = stage("scan", "lidar", wcet_ns=4, bcet_ns=3)
    track = stage("track", "scan", wcet_ns=2)
    spec = pipeline(scan, track, scan=(1,), track=(6,))
    assert worst(spec) == {"scan": (5, 5), "track": (8 - 4, 6)}
    unknown_best = pipeline(replace(scan, bcet_ns=None), track, scan=(1,), track=(6,))
    assert worst(unknown_best)["track"] == (8 - 2, 4)


def test_a_follower_planned_before_its_predecessor_ends_runs_in_the_next_cycle():
    spec = pipeline(
        stage("scan", "lidar", wcet_ns=4, bcet_ns=4),
        stage("track", "scan", deadline_ns=30),
        scan=(4,),
        track=(2,),
    )
    assert worst(spec)["track"] == (22 + 2 - 8, 14)


def test_jitter_delays_the_plan_and_no_longer_gives_exact_responses():
    scan = stage("scan", "lidar", wcet_ns=2, jitter_ns=3)
    assert worst(pipeline(scan, scan=(3,))) == {"scan": (5, 5)}
    early = pipeline(scan, scan=(0, 3))
    assert worst(early) == {"scan": (5, 5)}
    assert analyse(pipeline(scan, scan=(3,))).stage("scan").response.label == "exact"
    assert analyse(early).stage("scan").response.label == "bound"


def test_a_deadline_from_capture_counts_what_came_before():
    scan = stage("scan", "lidar", wcet_ns=4, bcet_ns=2)
    track = stage("track", "scan", deadline_from="capture", deadline_ns=9)
    spec = pipeline(scan, track, scan=(0,), track=(5,))
    assert worst(spec)["track"] == (5, 2)


def test_a_publication_at_the_deadline_is_what_followers_are_ready_by():
    scan = stage("scan", "lidar", wcet_ns=4, deadline_ns=7, publish="at_deadline")
    track = stage("track", "scan")
    assert worst(pipeline(scan, track, scan=(0,), track=(7,)))["track"] == (2, 8)
    again = pipeline(scan, replace(track, deadline_ns=30), scan=(0,), track=(6,))
    assert worst(again)["track"] == (21, 9)


def test_the_last_replica_counts():
    scan = timer("scan", 20, redundancy=RedundancySpec(copies=2))
    spec = pipeline(scan, slots=2, scan_0=(0,), scan_1=(5,))
    assert worst(spec) == {"scan": (7, 3)}
    assert faults(pipeline(scan, slots=1, scan_0=(0,), scan_1=(1,))) == [
        "scan.1: no slot of cpu is free at 1 ns"
    ]


@pytest.mark.parametrize(
    ("tolerance", "timeout", "known"),
    [(0, 50, True), (0, 3, False), (15, 50, True), (20, 50, False)],
)
def test_a_set_is_known_where_it_is_complete_every_time(tolerance, timeout, known):
    sync = SyncSpec(tolerance_ns=tolerance, timeout_ns=timeout)
    spec = pipeline(
        stage("scan", "lidar", wcet_ns=4, bcet_ns=4),
        stage("fuse", "scan", "camera", sync=sync),
        scan=(0,),
        fuse=(6,),
    )
    assert worst(spec)["fuse"] == ((4, 6) if known else None)


def test_where_a_rate_is_not_known_nothing_is_said():
    spec = pipeline(stage("scan", "lidar"), scan=(0,))
    silent = replace(spec, sources=(SourceSpec(name="lidar", type="lidar"),))
    assert faults(silent) == []
    assert analyse(silent).stage("scan").verdict == "unknown"


def test_a_message_comes_its_latency_after_a_capture_in_phase():
    spec = pipeline(stage("a", "s", wcet_ns=2, deadline_ns=5), a=(7,))
    late = replace(spec, sources=(replace(spec.sources[0], latency_ns=6),))
    assert faults(late) == []
    assert worst(late) == {"a": (3, 2)}
