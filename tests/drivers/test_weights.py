"""Weights that change during a run: found, mended, told as a fault; and refused at the start."""

from itertools import count

import numpy as np
import pytest
from replicas import Counting

import avrt
from avrt.drivers.verify import verify
from avrt.drivers.weights import other_weights
from avrt.errors import SpecError
from avrt.logs.record.run_file import read_outputs
from avrt.model.records import FaultRecord, ModeRecord, ResourceRecord

MS = 1_000_000


class Table(avrt.Stage):
    """Looks up in a table; something flips a bit of it before some of its jobs."""

    def __init__(self, flips=()):
        self.flips = flips

    def warm(self):
        self.table = np.ones(4)

    def weight_arrays(self):
        return [self.table]

    def process(self, cloud):
        if cloud.stamp.sequence in self.flips:
            self.table.view(np.uint8)[9] ^= 4
        return self.table.copy()


class Many(Table):
    """Gives 64 KiB in 32 arrays."""

    def warm(self):
        super().warm()
        self.parts = [np.ones(256) for _ in range(32)]

    def weight_arrays(self):
        return [*self.parts, self.table]


def scrubbed(make_pipeline, target, *, scrub="300 ms", **keys):
    pipeline = make_pipeline()
    keys = {"wcet": "5 ms", "deadline": "50 ms", "scrub": scrub, **keys}
    pipeline.add(target, name="it", inputs={"cloud": "lidar"}, **keys)
    return pipeline


@pytest.mark.parametrize("stage", [Table, Many])
def test_a_change_costs_one_output_and_is_told_in_time(
    stage, make_drive, make_pipeline, tmp_path, read_records, read_ends
):
    pipeline = scrubbed(make_pipeline, stage, scrub="900 ms", params={"flips": [4]})
    outs = [tmp_path / "run.mcap", tmp_path / "again.mcap"]
    reports = [pipeline.replay(make_drive(20), out=out) for out in outs]
    assert reports[0].data["digests"] == reports[1].data["digests"]
    (fault,) = read_records(outs[0], FaultRecord)
    assert (fault.task, fault.fault) == ("it", "weights")
    assert 400 * MS < fault.at_ns <= 400 * MS + 900 * MS
    assert verify(outs[0]).equal
    told = reports[0].data["stages"]["it"]["first_fault"]
    assert told.startswith("weights: 1 bit of array ")
    assert told.endswith("float64 [4] had changed; mended from its copy")
    assert reports[0].data["faults"] == {"it: weights": 1}
    ends = read_ends(outs[0], "it")
    failed = ends.index(("aborted", "failure"))
    assert ends == [("met", "")] * failed + [("aborted", "failure")] + [("met", "")] * (19 - failed)
    wrong = [index for index, most in enumerate(most_of(outs[0])) if most > 1]
    assert wrong == list(range(4, failed))


def most_of(path):
    """The greatest number of each output."""
    return [max(message.payload) for message in read_outputs(path, "it")]


def test_the_third_change_is_given_up(make_drive, make_pipeline, tmp_path, read_ends):
    pipeline = scrubbed(make_pipeline, Table, params={"flips": [2, 6, 10]})
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(16), out=out)
    failed = [index for index, end in enumerate(read_ends(out, "it")) if end[0] == "aborted"]
    assert failed == [3, 7, 11, 12, 13, 14, 15]


def test_weights_that_stay_tell_nothing(make_drive, make_pipeline):
    report = scrubbed(make_pipeline, Many).replay(make_drive(20))
    assert report.data["faults"] == {}
    assert report.jobs["met"] == 20


class Unlike(Table):
    """Each one that is made has other weights."""

    made = count()

    def warm(self):
        self.table = np.full(4, float(next(self.made)))


class AlikeButForOne(Table):
    made = count()

    def warm(self):
        self.table = np.full(4, float(next(self.made) == 2))


@pytest.mark.parametrize(
    ("stage", "told"), [(Unlike, "it.0 and it.1 run"), (AlikeButForOne, "it.0 and it.2 run")]
)
@pytest.mark.parametrize("scrub", [{}, {"scrub": "300 ms"}])
def test_copies_of_one_class_with_different_weights_are_refused(
    make_drive, make_pipeline, stage, told, scrub
):
    stage.made = count()
    pipeline = make_pipeline()
    keys = {"wcet": "5 ms", "deadline": "50 ms", "redundancy": {"copies": 3, "one_domain": True}}
    pipeline.add(stage, name="it", inputs={"cloud": "lidar"}, **keys, **scrub)
    with pytest.raises(SpecError) as caught:
        pipeline.replay(make_drive(2))
    assert caught.value.key == ("stages", "it")
    assert f"{told} the same code with different weights: 32 bytes, CRC32 " in caught.value.what


def test_copies_of_other_classes_may_have_other_weights(make_drive, make_pipeline):
    pipeline = make_pipeline()
    runs = ["replicas:Weighing", "replicas:WeighingMore", "replicas:Weighing"]
    redundancy = {"copies": 3, "runs": runs, "tolerance": 1e-5}
    keys = {"wcet": "5 ms", "deadline": "50 ms", "redundancy": redundancy}
    pipeline._stages["it"] = {"inputs": {"cloud": "lidar"}, **keys}
    assert pipeline.replay(make_drive(2)).jobs["met"] == 6


def without(cloud):
    return cloud.payload.count


@pytest.mark.parametrize("stage", [without, Counting])
def test_a_stage_without_weights_cannot_be_scrubbed(make_drive, make_pipeline, stage):
    pipeline = scrubbed(make_pipeline, stage)
    with pytest.raises(SpecError, match="it has no weights to check") as caught:
        pipeline.replay(make_drive(2))
    assert caught.value.key == ("stages", "it", "scrub")


def test_weights_that_cannot_be_given_are_told_at_the_start(make_drive, make_pipeline):
    class Odd(Table):
        def weight_arrays(self):
            return self.nothing

    with pytest.raises(SpecError, match=r"weights\(\) failed: AttributeError"):
        scrubbed(make_pipeline, Odd).replay(make_drive(2))


class Known:
    """What is known of the weights of a stream."""

    def __init__(self, **crc32s):
        self.scrub = self
        self.crc32s = crc32s
        self.told = str(crc32s)


def test_a_stage_that_is_made_anew_has_the_weights_it_had():
    assert other_weights(Known(it=1), Known(it=1)) is None
    assert other_weights(Known(it=1), Known(it=2)).kind == "weights"
    assert other_weights(Known(), Known(it=2)).kind == "weights"


@pytest.mark.live
@pytest.mark.slow
def test_a_live_run_tells_and_mends(make_drive, make_pipeline, tmp_path, read_records):
    pipeline = scrubbed(make_pipeline, Table, deadline="80 ms", params={"flips": [2]})
    out = tmp_path / "run.mcap"
    report = pipeline.run(make_drive(8), record=out, rate=2)
    assert [fault.fault for fault in read_records(out, FaultRecord)] == ["weights"]
    assert read_records(out, ResourceRecord) == []
    assert "checked behind a job" in report.data["conditions"]["weights.it"]
    assert [most > 1 for most in most_of(out)] == [False, False, True] + [False] * 4
    assert verify(out).equal


def test_a_stage_that_is_given_up_leads_to_the_level_of_its_variant(
    make_drive, make_pipeline, tmp_path, read_ends, read_records
):
    levels = {"full": {}, "less": {"stages": {"it": {"variant": "light"}}}}
    pipeline = make_pipeline(ladder={"max_age": "1 s", "levels": levels})
    pipeline.add(
        Table,
        name="it",
        inputs={"cloud": "lidar"},
        wcet="5 ms",
        deadline="50 ms",
        scrub="300 ms",
        criticality="ASIL-B",
        params={"flips": [2, 6, 10]},
        variants={"light": {"params": {"flips": []}}},
    )
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(18), out=out)
    (entered,) = [mode for mode in read_records(out, ModeRecord) if mode.cause]
    assert (entered.mode, entered.cause) == ("less", "faults")
    failed = [index for index, end in enumerate(read_ends(out, "it")) if end[0] == "aborted"]
    assert failed == [3, 7, 11]
