"""Every fault of a clock is told as what it is, and every one is handled by the rule of its kind.

A drive of 60 messages at 10 Hz, of which one thing is wrong. Mapped capture times stay within a
second of the log's whatever a stamp says, unless it is late for another reason.
"""

from __future__ import annotations

import numpy as np
import pytest
from rosbags.typesys.stores import ros2_jazzy as ros

from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.ros.message import cloud_message, cloud_rows
from avrt.logs.ros.types import CLOUD, known_types
from avrt.logs.writer import LogWriter
from avrt.model.spec import SourceSpec
from avrt.payload import PointCloud

MS = 1_000_000
S = 1_000 * MS
START = 1_700_000_000 * S
PERIOD = 100 * MS
COUNT = 60
SOURCE = SourceSpec(name="roof", type="lidar", topic="/lidar", period_ns=PERIOD)
ROWS = cloud_rows(PointCloud(np.ones((1, 3), np.float32), None, None))
AT = [START + k * PERIOD for k in range(COUNT)]
NOISE = np.random.default_rng(1).integers(-8 * MS, 8 * MS, COUNT).tolist()


def parts(ns):
    return ns // S, ns % S


def regular():
    """Return (stamp as seconds and nanoseconds, log time) of each message."""
    return [(parts(at), at) for at in AT]


def moved(where, by_ns, log_by_ns=0):
    """Return the drive with the stamps, and perhaps the log times, moved at these places."""
    return [
        (parts(at + by_ns * (k in where)), at + log_by_ns * (k in where)) for k, at in enumerate(AT)
    ]


def changed(place, stamp=None, log_ns=None):
    """Return the drive with one stamp or log time of its own."""
    rows = regular()
    rows[place] = (stamp or rows[place][0], rows[place][1] if log_ns is None else log_ns)
    return rows


LATER, LAST, ONE = range(30, COUNT), (COUNT - 1,), (30,)
HOUR = 3600 * S
FAULTS = {
    "none": (regular(), {}),
    "jitter": ([(parts(at + by), at) for at, by in zip(AT, NOISE, strict=True)], {}),
    "latency": ([(parts(at), at + 300 * MS) for at in AT], {}),
    "offset": (moved(range(COUNT), -37 * S), {"clock_offset": 1}),
    "offset since boot": (moved(range(COUNT), 543 * S - START), {"clock_offset": 1}),
    "jump ahead": (moved(LATER, 37 * S), {"stamp_jump": 1}),
    "jump back": (moved(LATER, -18 * S), {"stamp_jump": 1}),
    "one wild stamp": (moved(ONE, 600 * S), {"stamp_jump": 2}),
    "out of order": (moved(ONE, -150 * MS), {"stamp_back": 1}),
    "repeated": (moved(ONE, -PERIOD), {"stamp_duplicate": 1}),
    "rounded": ([(parts(at - (k % 2) * 90_000), at) for k, at in enumerate(AT)], {}),
    "pause": (moved(LATER, HOUR, HOUR), {"stamp_gap": 1}),
    "messages missing": (regular()[:30] + regular()[40:], {"stamp_gap": 1}),
    "other rate": ([(parts(START + k * S), START + k * S) for k in range(COUNT)], None),
    "loop": ([(parts(AT[k % 30]), at) for k, at in enumerate(AT)], {"loop": 1}),
    "log stalls": ([(parts(at), max(at, AT[50] * (k > 20))) for k, at in enumerate(AT)], {}),
    "seconds of nanoseconds": (changed(30, (AT[30] // S, 4_294_967_295)), {"stamp_invalid": 1}),
    "zero": (changed(30, (0, 0)), {"stamp_invalid": 1}),
    "negative": (changed(30, (-1, 999_999_999)), {"stamp_invalid": 1}),
    "most seconds there are": (changed(30, (2**31 - 1, 999_999_999)), {"stamp_jump": 2}),
    "log time of 64 bits": (changed(59, log_ns=2**64 - 1), {"log_time": 1}),
    "log time beyond 62 bits": (changed(59, log_ns=2**63), {"log_time": 1}),
}
LOST = {"log time of 64 bits", "log time beyond 62 bits"}


def play(path, rows):
    store = known_types()
    with LogWriter(path) as log:
        for (sec, nanosec), log_ns in rows:
            stamp = ros.builtin_interfaces__msg__Time(sec=sec, nanosec=nanosec)
            message = cloud_message(ros.std_msgs__msg__Header(stamp, "roof"), ROWS)
            log.add_raw("/lidar", CLOUD, log_ns, bytes(store.serialize_cdr(message, CLOUD)))
    with open_log(path) as reader:
        merged = MergedLog(reader, [SOURCE])
        return list(merged), {a.kind: a.count for a in merged.anomalies}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_of_a_clock_is_told_as_what_it_is(tmp_path, name):
    rows, told = FAULTS[name]
    messages, found = play(tmp_path / "log.mcap", rows)
    if told is None:
        told = {"rate_differs": 1, "stamp_gap": 1}  # the first step, before the second one came
    assert found == told
    assert len(messages) == len(rows) - (name in LOST)
    assert messages[-1].epoch == ("loop" in told)
    late_ns = 3 * S if name == "log stalls" else S
    assert all(abs(m.log_ns - m.capture_ns) <= late_ns for m in messages)
