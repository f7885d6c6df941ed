"""Replicas that really compute are voted on, in every driver alike."""

import threading
from dataclasses import replace

import pytest
import replicas

import avrt
from avrt.drivers.ballots import Ballots
from avrt.drivers.recording import read_recorded
from avrt.drivers.verify import verify
from avrt.drivers.whatif import repeat
from avrt.errors import SpecError
from avrt.model.records import VoteRecord

RIGHT = ["replicas:right", "replicas:other", "replicas:third"]


@pytest.fixture
def voted(make_pipeline):
    """Return a function that makes a pipeline of one redundant stage and one behind it."""

    def make(runs, slots=3, deadline="100 ms", **redundancy):
        pipeline = make_pipeline(slots=slots)
        keys = {"copies": len(runs), "runs": runs, "tolerance": 1e-5, **redundancy}
        pipeline.add(
            lambda cloud: cloud,
            name="see",
            inputs={"cloud": "lidar"},
            wcet="5 ms",
            deadline=deadline,
            redundancy=keys,
        )
        pipeline.add(
            lambda seen: [seen.payload, seen.degraded],
            name="plan",
            inputs={"seen": "see"},
            wcet="1 ms",
            deadline="50 ms",
        )
        return pipeline

    return make


@pytest.fixture
def outputs(make_drive, tmp_path):
    """Return a function that replays a pipeline, and what it published and decided."""

    def run(pipeline, frames=8, **keys):
        out = tmp_path / "run.mcap"
        report = pipeline.replay(make_drive(frames), out=out, **keys)
        assert verify(out).equal
        recorded = read_recorded(out)
        assert repeat(recorded, recorded.spec).digest == recorded.digest
        return report, avrt.read_outputs(out, "see"), avrt.read_outputs(out, "plan")

    return run


@pytest.fixture
def votes(tmp_path, read_records):
    """Return a function that reads the decisions of the run."""
    return lambda: read_records(tmp_path / "run.mcap", VoteRecord)


def verdicts(votes):
    return [record.verdict for record in votes if record.verdict]


def test_replicas_of_different_code_agree(voted, outputs, votes):
    report, seen, planned = outputs(voted(RIGHT))
    assert len(seen) == len(planned) == 8
    assert verdicts(votes()) == ["unanimous"] * 8
    assert report.jobs["met"] == 4 * 8


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("bad", ["wrong", "not_a_number", "raises"])
def test_one_bad_replica_changes_no_output_and_is_quarantined(voted, outputs, votes, bad, place):
    _, expected, _ = outputs(voted(RIGHT))
    runs = [*RIGHT]
    runs[place] = f"replicas:{bad}"
    _, seen, _ = outputs(voted(runs))
    assert len(seen) == 8
    for found, wanted in zip(seen, expected, strict=True):
        assert found.payload["sum"] == pytest.approx(wanted.payload["sum"], rel=1e-12)
        assert found.stamp.capture_ns == wanted.stamp.capture_ns
    told = votes()
    kinds = {"majority", "majority_of_two"} | ({"unanimous"} if bad == "not_a_number" else set())
    assert set(verdicts(told)) <= kinds
    assert {task for record in told for task in record.blamed} == {f"see.{place}"}


def test_a_pair_of_one_code_that_another_contradicts_says_that_it_is_less(voted, outputs, votes):
    runs = ["replicas:Trusting", "replicas:Trusting", "replicas:right"]
    _, expected, _ = outputs(voted(RIGHT))
    _, seen, planned = outputs(voted(runs))
    assert verdicts(votes())[3:6] == ["weak_majority"] * 3
    assert not any(record.blamed for record in votes())
    assert [message.degraded for message in seen] == [False] * 3 + [True] * 3 + [False] * 2
    assert [message.payload[1] for message in planned] == [message.degraded for message in seen]
    for found, wanted in zip(seen, expected, strict=True):
        assert found.payload["sum"] == pytest.approx(wanted.payload["sum"] + found.degraded)
        assert (found.stamp.capture_ns, found.origins) == (wanted.stamp.capture_ns, wanted.origins)


def test_without_a_majority_the_last_output_is_held_for_two_frames(voted, outputs, votes):
    runs = ["replicas:right", "replicas:wrong_at_times", "replicas:worse_at_times"]
    _, seen, planned = outputs(voted(runs))
    assert [record.held for record in votes() if record.verdict] == [
        False, False, False, True, False, False, False, False
    ]  # fmt: skip
    held = next(message for message in seen if message.degraded)
    assert held.payload == seen[2].payload
    assert held.stamp.capture_ns == seen[2].stamp.capture_ns
    assert len(planned) == len(seen) == 6
    assert list(planned[3].payload) == [held.payload, True]


def test_two_copies_that_disagree_decide_nothing(voted, outputs, votes):
    _, seen, _ = outputs(voted(["replicas:right", "replicas:wrong"]))
    assert seen == []
    assert verdicts(votes()) == ["tie"] * 8


def test_an_acceptance_test_of_the_stage_decides_between_two(voted, outputs):
    runs = ["replicas:Testing", "replicas:Leaping"]
    _, seen, _ = outputs(voted(runs))
    assert [message.payload for message in seen] == list(range(1, 9))


def test_with_one_slot_the_third_runs_after_the_decision(voted, outputs, votes):
    _, seen, _ = outputs(voted(RIGHT, slots=1))
    assert [message.stamp.publish_ns - message.stamp.capture_ns for message in seen] == [10**7] * 8
    assert verdicts(votes()) == ["majority_of_two"] * 8


def test_what_is_not_there_before_the_deadline_is_not_waited_for(voted, outputs, votes):
    pipeline = voted(RIGHT, slots=1, deadline="12 ms", decide_before="3 ms")
    _, seen, _ = outputs(pipeline, frames=1)
    assert seen == []
    assert verdicts(votes()) == ["single"]


def test_at_the_deadline_outputs_do_not_depend_on_which_copy_is_quicker(make_pipeline, outputs):
    found = []
    for runs in (RIGHT, RIGHT[::-1]):
        pipeline = make_pipeline()
        pipeline.add(
            lambda cloud: cloud,
            name="see",
            inputs={"cloud": "lidar"},
            wcet="5 ms",
            deadline="50 ms",
            publish="at_deadline",
            redundancy={"copies": 3, "runs": runs, "tolerance": 1e-5},
        )
        pipeline.add(
            lambda seen: seen.payload, name="plan", inputs={"seen": "see"}, wcet="1 ms",
            deadline="50 ms",
        )  # fmt: skip
        _, seen, _ = outputs(pipeline)
        found.append([message.stamp.publish_ns for message in seen])
    assert found[0] == found[1]


def slipping_on(task):
    """Return a stage that counts, and slips once on the stream of one copy."""

    class Slipping(replicas.Counting):
        def process(self, cloud):
            if threading.current_thread().name == f"avrt-{task}" and cloud.stamp.sequence == 2:
                self.count += 100
            return super().process(cloud)

    return Slipping


def test_a_quarantined_replica_takes_over_the_state_of_a_trusted_one_and_comes_back(
    make_pipeline, outputs, votes, monkeypatch
):
    monkeypatch.setattr("avrt.safety.replicas.SHADOW_FRAMES", 3)
    pipeline = make_pipeline()
    pipeline.add(
        slipping_on("see.2"),
        name="see",
        inputs={"cloud": "lidar"},
        wcet="1 ms",
        deadline="50 ms",
        redundancy={"copies": 3, "one_domain": True},
    )
    pipeline.add(
        lambda seen: seen.payload, name="plan", inputs={"seen": "see"}, wcet="1 ms",
        deadline="50 ms",
    )  # fmt: skip
    _, seen, _ = outputs(pipeline, frames=14)
    assert [message.payload for message in seen] == list(range(1, 15))
    wrong = [record.activation for record in votes() if record.blamed]
    told = verdicts(votes())
    assert len(wrong) == 3
    assert told[:2] == ["unanimous"] * 2
    assert told[2:5] == ["majority"] * 3
    assert told[5:8] == ["majority_of_two"] * 3
    assert told[8:] == ["unanimous"] * 6


def test_a_payload_of_a_shape_that_nobody_expected_ends_nothing(voted, outputs, votes):
    _, seen, _ = outputs(voted(["replicas:odd", *RIGHT[1:]]))
    assert len(seen) == 8
    assert {task for record in votes() for task in record.blamed} == {"see.0"}


def test_an_acceptance_test_that_raises_refuses_and_ends_nothing(voted, outputs, votes):
    _, seen, _ = outputs(voted(["replicas:Booming", "replicas:Counting", "replicas:Counting"]))
    assert seen == []
    assert set(verdicts(votes())) == {"rejected"}


def test_what_hits_all_copies_once_costs_one_output(voted, outputs, votes):
    _, seen, _ = outputs(voted(["replicas:raises_once"] * 3, one_domain=True))
    assert [message.degraded for message in seen] == [False, True] + [False] * 6
    assert verdicts(votes()) == ["unanimous", "none", *["unanimous"] * 6]


def test_with_more_slots_a_recorded_run_decides_what_it_decided(voted, outputs, tmp_path):
    runs = [RIGHT[0], "replicas:wrong", RIGHT[1]]
    _, seen, _ = outputs(voted(runs, slots=1))
    recorded = read_recorded(tmp_path / "run.mcap")
    cpu = replace(recorded.spec.devices[0], slots=4)
    found = repeat(recorded, replace(recorded.spec, devices=(cpu,)))
    assert len(seen) == 8
    assert found.figures.stages["plan"].jobs()["met"] == 8
    quicker = replace(recorded.spec.stage("see"), deadline_ns=1_000_000)
    spec = replace(recorded.spec, stages=(quicker, recorded.spec.stage("plan")))
    assert repeat(recorded, spec).figures.stages["plan"].jobs()["released"] == 0


@pytest.mark.parametrize("keys", [{}, {"on_miss": "abort"}, {"queue": 1}])
def test_nothing_is_kept_of_votes_that_are_over(
    make_pipeline, make_drive, tmp_path, monkeypatch, keys
):
    made = []

    class Noted(Ballots):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            made.append(self)

    monkeypatch.setattr("avrt.drivers.worker.Ballots", Noted)
    pipeline = make_pipeline(slots=1)
    pipeline.add(
        lambda cloud: cloud,
        name="see",
        inputs={"cloud": "lidar"},
        wcet="40 ms",
        deadline="60 ms",
        redundancy={"copies": 3, "runs": RIGHT, "tolerance": 1e-5},
        **keys,
    )
    pipeline.replay(make_drive(30), out=tmp_path / "run.mcap")
    assert verify(tmp_path / "run.mcap").equal
    (ballots,) = made
    assert not ballots._ends
    assert not ballots.voters["see"]._decided


def test_a_timer_stage_is_of_the_time_of_its_release_whichever_copy_is_selected(
    make_pipeline, make_drive, tmp_path
):
    pipeline = make_pipeline(slots=1)
    pipeline.add(
        lambda: 1,
        name="beat",
        period="50 ms",
        wcet="5 ms",
        deadline="40 ms",
        redundancy={"copies": 3, "one_domain": True},
    )
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(3), out=out)
    stamps = [message.stamp.capture_ns for message in avrt.read_outputs(out, "beat")]
    assert stamps == [50_000_000 * number for number in range(len(stamps))]
    assert len(stamps) > 3


@pytest.mark.slow
@pytest.mark.live
def test_a_live_run_votes_and_verifies(voted, make_drive, tmp_path):
    out = tmp_path / "run.mcap"
    runs = [*RIGHT[:2], "replicas:wrong"]
    report = voted(runs, deadline="5 s").run(make_drive(6), record=out, rate=2)
    assert verify(out).equal
    assert len(avrt.read_outputs(out, "see")) == 6
    assert report.jobs["open"] == 0
    recorded = read_recorded(out)
    assert repeat(recorded, recorded.spec).digest == recorded.digest


def test_copies_of_one_code_are_refused_unless_the_file_says_so(make_pipeline, outputs):
    def pipeline(**redundancy):
        made = make_pipeline()
        made.add(
            lambda cloud: cloud.stamp.sequence,
            name="see",
            inputs={"cloud": "lidar"},
            wcet="1 ms",
            deadline="50 ms",
            redundancy={"copies": 3, **redundancy},
        )
        made.add(
            lambda seen: seen.payload, name="plan", inputs={"seen": "see"}, wcet="1 ms",
            deadline="50 ms",
        )  # fmt: skip
        return made

    with pytest.raises(SpecError, match="one fault may hit all of them"):
        pipeline().check()
    _, seen, _ = outputs(pipeline(one_domain=True))
    assert [message.payload for message in seen] == list(range(8))


# Time redundancy


@pytest.mark.parametrize("bad", ["wrong_at_times", "raises"])
def test_a_third_run_decides_where_two_differ(voted, outputs, votes, read_records, bad):
    """On one slot, one after the other; the third only where it is needed."""
    runs = ["replicas:right", f"replicas:{bad}", "replicas:third"]
    pipeline = voted(runs, slots=1, spare=1)
    report, seen, _ = outputs(pipeline)
    assert len(seen) == 8
    right = {"sum": seen[0].payload["sum"]}
    assert set(right) == {"sum"}
    third = [job.index for job in read_records(report.data["record"]) if job.task == "see.2"]
    since = 3 if bad == "wrong_at_times" else 0  # three times, and it is quarantined
    assert third == list(range(since, 8))
    assert len(verdicts(votes())) == 8
    assert all(vote.accepted for vote in votes() if vote.verdict)


def test_where_all_agree_the_third_never_runs(voted, outputs, votes, read_records):
    report, seen, _ = outputs(voted(RIGHT, slots=1, spare=1))
    assert len(seen) == 8
    assert [job for job in read_records(report.data["record"]) if job.task == "see.2"] == []
    assert set(verdicts(votes())) == {"majority_of_two"}
    assert not any(vote.blamed for vote in votes())
