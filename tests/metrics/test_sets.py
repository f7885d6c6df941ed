"""What incomplete sets lack and drop is counted by input; an optional input drops nothing."""

from avrt.metrics.sets import DroppedSet, DropWatch, SetFigures, dropped_set
from avrt.model.commands import Publish, Record
from avrt.model.records import SyncRecord
from avrt.model.spec import DeviceSpec, InputSpec, PipelineSpec, StageSpec, SyncSpec

MS = 1_000_000
STAGE = StageSpec(
    name="fuse",
    device="cpu",
    wcet_ns=MS,
    deadline_ns=50 * MS,
    sync=SyncSpec(tolerance_ns=20 * MS, timeout_ns=50 * MS),
    inputs=(
        InputSpec(name="camera", source="camera"),
        InputSpec(name="lidar", source="lidar"),
        InputSpec(name="radar", source="radar", optional=True),
    ),
)
WITHOUT_RADAR = SyncRecord("fuse", 60 * MS, ("radar",), (1, 2, None))
WITHOUT_LIDAR = SyncRecord("fuse", 70 * MS, ("lidar",), (11, None, 13))
CAMERA_ALONE = SyncRecord("fuse", 80 * MS, ("lidar", "radar"), (21, None, None))
RECORDS = (WITHOUT_RADAR, WITHOUT_LIDAR, CAMERA_ALONE)


def figures_of(*records):
    figures = SetFigures(STAGE)
    for record in records:
        figures.add(record)
    return figures


def test_messages_are_counted_by_input_where_a_required_one_is_missing():
    assert figures_of(*RECORDS).summary() == {
        "incomplete": 3,
        "dropped": 2,
        "missing": {"camera": 0, "lidar": 2, "radar": 2},
        "dropped_messages": {"camera": 2, "lidar": 0, "radar": 1},
    }


def test_a_set_without_an_optional_input_is_used():
    assert dropped_set(STAGE, WITHOUT_RADAR) is None
    assert dropped_set(STAGE, WITHOUT_LIDAR) == DroppedSet(
        "fuse", 70 * MS, ("lidar",), {"camera": 11, "radar": 13}
    )


def test_a_record_of_before_tells_no_messages():
    old = SyncRecord("fuse", 70 * MS, ("lidar",))
    assert figures_of(old).summary()["dropped_messages"] == dict.fromkeys(
        ("camera", "lidar", "radar"), 0
    )


def test_it_is_said_in_words():
    assert figures_of(WITHOUT_RADAR, WITHOUT_RADAR).told == (
        "2 incomplete sets, no radar in 2 (in time, and within 20 ms)"
    )
    assert figures_of(*RECORDS).told == (
        "3 incomplete sets, no lidar in 2, no radar in 2 (in time, and within 20 ms); "
        "2 dropped, with messages: 2 of camera, 1 of radar"
    )


def test_a_watch_tells_of_dropped_sets_only_and_in_order():
    spec = PipelineSpec(name="p", devices=(DeviceSpec(name="cpu"),), stages=(STAGE,))
    told = []
    watch = DropWatch(spec, told.append)
    watch(80 * MS, [], [*map(Record, RECORDS), Publish(0, 1, 80 * MS)])
    assert [one.missing for one in told] == [("lidar",), ("lidar", "radar")]
