"""What each tap does to messages, payloads, devices: by example and by property."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.api.raw_messages import RawMessages
from avrt.drivers.draws import generator
from avrt.drivers.inject.applied import Applied
from avrt.drivers.inject.campaign import drawn
from avrt.drivers.inject.devices import device_events
from avrt.drivers.inject.messages import TAPS, broken, spoilt
from avrt.drivers.inject.values import with_added, with_flip, with_nan
from avrt.logs.decode import decode
from avrt.logs.merge import SourceMessage
from avrt.logs.raw import RawMessage
from avrt.model.campaign import Injection
from avrt.model.events import DeviceBack, DeviceLost
from avrt.payload import Speed
from avrt.units import NS_PER_MS, NS_PER_S

ZERO_NS = 1_000 * NS_PER_S
STEP_NS = 100 * NS_PER_MS


def messages(count=6, topics=("/a",)):
    made = []
    encoder = RawMessages(made.append)
    for index in range(count):
        for topic in topics:
            at_ns = ZERO_NS + index * STEP_NS
            xyz = np.full((2, 3), index, np.float32)
            encoder.add_cloud(topic, "roof", at_ns - 7, xyz, log_ns=at_ns)
    return made


def fault(kind, **keys):
    keys = keys or {"frame": 2}
    return Injection(place="source", target="a", kind=kind, **keys)


def seen(raws):
    """What a source would see: (log ms, stamp ms, content) of each message."""
    found = []
    for raw in raws:
        decoded = decode(raw, "lidar")
        times = (raw.log_ns - ZERO_NS, decoded.header_ns + 7 - ZERO_NS)
        found.append((*(t // NS_PER_MS for t in times), int(decoded.payload.xyz[0, 0])))
    return found


GOOD = [(100 * n, 100 * n, n) for n in range(6)]


@pytest.mark.parametrize(
    ("tapped", "expected"),
    [
        (fault("drop"), [*GOOD[:2], *GOOD[3:]]),
        (fault("drop", frame=2, count=3), [*GOOD[:2], *GOOD[5:]]),
        (fault("drop", at_ns=2 * STEP_NS, for_ns=2 * STEP_NS), [*GOOD[:2], *GOOD[4:]]),
        (fault("drop", at_ns=2 * STEP_NS), GOOD[:2]),
        (
            fault("repeat", frame=2, count=2),
            [*GOOD[:2], (200, 200, 1), (300, 300, 1), *GOOD[4:]],
        ),
        (fault("duplicate"), [*GOOD[:3], (201, 200, 2), *GOOD[3:]]),
        (fault("swap"), [*GOOD[:2], GOOD[3], (301, 200, 2), *GOOD[4:]]),
        (fault("delay", frame=2, by=150e6), [*GOOD[:2], GOOD[3], (350, 200, 2), *GOOD[4:]]),
        (fault("stamp", frame=2, by=-50e6), [*GOOD[:2], (200, 150, 2), *GOOD[3:]]),
        (fault("drop", frame=99), GOOD),
    ],
)
def test_what_becomes_of_messages_on_their_way(tapped, expected):
    applied = Applied()
    raws = messages()
    assert seen(broken(raws, {"a": "/a"}, [tapped], ZERO_NS, applied)) == expected
    assert seen(raws) == GOOD
    if expected != GOOD:
        assert applied.times_ns == [(tapped.frame or 2) * STEP_NS]


def test_a_stuck_source_that_never_said_anything_begins_with_its_first_message():
    found = broken(messages(), {"a": "/a"}, [fault("repeat", frame=0, count=9)], ZERO_NS, Applied())
    assert [content for _, _, content in seen(found)] == [0] * 6


def test_several_faults_count_messages_as_they_would_come_without_any():
    both = [fault("drop", frame=0, count=2), fault("stamp", frame=3, by=1e6)]
    found = broken(messages(), {"a": "/a"}, both, ZERO_NS, Applied())
    assert seen(found) == [GOOD[2], (300, 301, 3), *GOOD[4:]]
    late = [fault("delay", frame=2, by=250e6), fault("drop", at_ns=4 * STEP_NS, for_ns=STEP_NS)]
    found = broken(messages(), {"a": "/a"}, late, ZERO_NS, Applied())
    assert seen(found) == [*GOOD[:2], GOOD[3], (450, 200, 2), GOOD[5]]


def test_a_clock_that_drifts_is_further_off_with_every_message():
    found = broken(
        messages(), {"a": "/a"}, [fault("drift", frame=2, count=9, by=-1000)], ZERO_NS, Applied()
    )
    off_ns = [decode(raw, "lidar").header_ns - raw.log_ns + 7 for raw in found]
    assert off_ns == [0, 0, 0, -STEP_NS // 1000, -2 * STEP_NS // 1000, -3 * STEP_NS // 1000]


def test_jitter_stays_within_its_bound_and_follows_from_the_seed():
    def stamps(seed):
        tapped = replace(fault("jitter", at_ns=0, by=8e6), seed=seed)
        found = broken(messages(50), {"a": "/a"}, [tapped], ZERO_NS, Applied())
        return [decode(raw, "lidar").header_ns - raw.log_ns + 7 for raw in found]

    assert stamps(1) == stamps(1) != stamps(2)
    assert all(abs(off_ns) <= 8e6 for off_ns in stamps(1))


def test_a_message_that_names_another_frame_is_the_same_otherwise():
    raws = messages()
    found = broken(raws, {"a": "/a"}, [fault("frame_id")], ZERO_NS, Applied())
    assert [decode(raw, "lidar").frame for raw in found] == ["roof"] * 2 + ["roox"] + ["roof"] * 3
    assert seen(found) == GOOD
    again = broken(found, {"a": "/a"}, [fault("frame_id")], ZERO_NS, Applied())
    assert decode(again[2], "lidar").frame == "rooy"


def test_a_message_without_a_frame_has_none_to_change():
    made = []
    RawMessages(made.append).add_cloud("/a", "", 7, np.ones((2, 3), np.float32), log_ns=9)
    found = broken(made, {"a": "/a"}, [fault("frame_id", frame=0)], 0, Applied())
    assert bytes(found[0].data) == bytes(made[0].data)


@pytest.mark.parametrize(
    "tapped", [{"frame": 2, "count": 3}, {"at_ns": 2 * STEP_NS, "for_ns": 3 * STEP_NS}]
)
def test_cross_wired_messages_come_in_place_of_the_own_ones(tapped):
    raws = messages(topics=("/a", "/b"))
    topics, applied = {"a": "/a", "b": "/b"}, Applied()
    crossing = fault("cross", other="b", **tapped)
    found = broken(raws, topics, [crossing], ZERO_NS, applied)
    assert applied.times_ns == [2 * STEP_NS]
    own, others = ([raw for raw in raws if raw.topic == topic] for topic in ("/a", "/b"))
    on_it = [raw for raw in found if raw.topic == "/a"]
    assert [bytes(r.data) for r in on_it] == [
        bytes(r.data) for r in [*own[:2], *others[2:5], *own[5:]]
    ]
    assert [raw for raw in found if raw.topic == "/b"] == others
    assert {raw.channel.type for raw in on_it} == {others[0].channel.type}


def test_a_second_writer_has_a_counter_and_stamps_of_its_own():
    second = fault("second", frame=2, count=3, by=10e6)
    found = list(broken(messages(), {"a": "/a"}, [second], ZERO_NS, Applied()))
    theirs = [raw for raw in found if raw.channel.writer]
    assert seen(theirs) == [(210, 210, 2), (310, 310, 3), (410, 410, 4)]
    assert [raw.sequence for raw in theirs] == [1, 2, 3]
    assert seen(raw for raw in found if not raw.channel.writer) == GOOD


def test_two_sensors_can_be_swapped():
    raws = messages(topics=("/a", "/b"))
    swapped = [
        Injection(place="source", target=a, kind="cross", other=b, frame=0, count=99)
        for a, b in (("a", "b"), ("b", "a"))
    ]
    found = broken(raws, {"a": "/a", "b": "/b"}, swapped, ZERO_NS, Applied())
    for own, other in (("/a", "/b"), ("/b", "/a")):
        on_it = [bytes(raw.data) for raw in found if raw.topic == own]
        assert on_it == [bytes(raw.data) for raw in raws if raw.topic == other]


@given(st.data())
def test_taps_touch_their_own_source_only_and_keep_the_order_of_the_log(data):
    kind = data.draw(st.sampled_from(sorted(TAPS)))
    tapped = fault(
        kind,
        frame=data.draw(st.integers(0, 8)),
        count=data.draw(st.integers(1, 8)),
        by=float(data.draw(st.integers(1, 10**9))),
        seed=data.draw(st.integers(0, 99)),
    )
    raws = messages(topics=("/a", "/b"))
    found = list(broken(raws, {"a": "/a", "b": "/b"}, [tapped], ZERO_NS, Applied()))
    assert [raw for raw in found if raw.topic == "/b"] == [r for r in raws if r.topic == "/b"]
    assert [raw.log_ns for raw in found] == sorted(raw.log_ns for raw in found)


# Wrong numbers


@dataclass(frozen=True)
class Thing:
    points: object
    label: str
    score: float
    count: int


THING = Thing(np.ones((4, 3), np.float32), "car", 0.5, 3)
payloads = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**6), 10**6),
        st.floats(allow_nan=False, width=32),
        st.text(max_size=3),
        st.integers(0, 3).map(lambda n: np.arange(n, dtype=np.float32)),
        st.integers(0, 3).map(lambda n: np.arange(n, dtype=np.int16)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(Thing, inner, st.text(max_size=2), st.floats(width=32), st.integers(0, 9)),
    ),
    max_leaves=6,
)


@given(payloads, st.integers(0, 1000), st.floats(0, 1))
def test_wrong_numbers_leave_the_build_of_a_payload_as_it_is(payload, seed, share):
    before = repr(payload)
    rng = generator(seed, "x")
    for made in (with_flip(payload, rng), with_nan(payload, share, rng), with_added(payload, 1.5)):
        assert type(made) is type(payload)
        assert repr(payload) == before


def test_nan_goes_into_a_share_of_the_numbers_and_nothing_else():
    made = with_nan(THING, 1.0, generator(0, "x"))
    assert np.isnan(made.points).all()
    assert math.isnan(made.score)
    assert (made.label, made.count) == ("car", 3)
    some = with_nan(np.ones(10_000), 0.02, generator(0, "x"))
    assert 150 <= np.isnan(some).sum() <= 250


@given(st.integers(0, 10**6))
def test_a_flip_changes_exactly_one_number_by_its_sign_or_exponent(seed):
    made = with_flip(THING, generator(seed, "x"))
    numbers = [*made.points.ravel().tolist(), made.score]
    wrong = [b for a, b in zip([1.0] * 12 + [0.5], numbers, strict=True) if a != b]
    assert len(wrong) == 1
    mantissa, _ = math.frexp(abs(wrong[0]))
    assert mantissa == 0.5 or not math.isfinite(wrong[0])
    assert (made.label, made.count) == ("car", 3)


def test_without_floating_point_numbers_a_bit_of_an_integer_is_flipped():
    assert with_flip({"count": 8}, generator(0, "x")) != {"count": 8}
    assert with_flip(["a", None, True], generator(0, "x")) == ["a", None, True]


# Devices


def lost(device="gpu", **keys):
    return Injection(place="device", target=device, kind="lost", **keys)


def events(*faults, end_ns=100):
    found = device_events(faults, end_ns, Applied())
    return [(at_ns, type(event), event.device) for at_ns, event in found]


def test_a_device_is_away_while_any_fault_says_so():
    both = (lost(at_ns=10, for_ns=20), lost(at_ns=20, for_ns=30), lost("other", at_ns=15))
    assert events(*both) == [
        (10, DeviceLost, "gpu"),
        (15, DeviceLost, "other"),
        (50, DeviceBack, "gpu"),
    ]


def test_a_flap_is_lost_and_back_in_turns_until_the_drive_ends():
    flap = Injection(
        place="device", target="gpu", kind="flap", at_ns=10, up_ns=20, down_ns=5, count=9
    )
    found = events(flap)
    assert [at_ns for at_ns, _, _ in found] == [30, 35, 55, 60, 80, 85]
    assert [kind for _, kind, _ in found] == [DeviceLost, DeviceBack] * 3


@given(
    st.lists(st.tuples(st.integers(0, 50), st.one_of(st.none(), st.integers(1, 30))), max_size=5)
)
def test_a_device_is_never_lost_twice_nor_back_twice(spans):
    found = events(*(lost(at_ns=at_ns, for_ns=for_ns) for at_ns, for_ns in spans))
    kinds = [kind for _, kind, _ in found]
    assert kinds == [DeviceLost, DeviceBack] * (len(kinds) // 2) + [DeviceLost] * (len(kinds) % 2)
    assert [at_ns for at_ns, _, _ in found] == sorted(at_ns for at_ns, _, _ in found)


@given(st.integers(0, 2**62), st.text(max_size=5))
def test_the_same_seed_draws_the_same_faults(seed, name):
    faults = [fault("flip"), fault("flip"), fault("nan")]
    assert drawn(faults, seed, name) == drawn(faults, seed, name)
    seeds = {item.seed for item in drawn(faults, seed, name)}
    assert len(seeds) == 3
    assert drawn(faults, seed ^ 1, name) != drawn(faults, seed, name)


# What comes on top, and what is counted wrong


def test_a_counter_that_stands_is_that_of_the_last_message_before():
    found = broken(
        messages(), {"a": "/a"}, [fault("counter", frame=2, count=2)], ZERO_NS, Applied()
    )
    assert [raw.sequence for raw in found] == [0, 1, 1, 1, 4, 5]
    assert seen(found) == GOOD


def source_messages(count=4, sources=("a", "b")):
    for index in range(count):
        for source in sources:
            at_ns = index * STEP_NS
            raw = RawMessage(None, at_ns, at_ns, index + 10, b"")
            yield SourceMessage(source, index, at_ns, at_ns - 5, 0, "", Speed(1.0, 2.0), raw)


def test_a_sender_that_says_twice_as_much_counts_as_it_would():
    applied = Applied()
    tapped = fault("twice", frame=1, count=2, by=STEP_NS / 2)
    found = list(spoilt(source_messages(), [tapped], applied))
    own = [item for item in found if item.source == "a"]
    assert [item.log_ns * 2 // STEP_NS for item in own] == [0, 2, 3, 4, 5, 6]
    assert [item.sequence for item in own] == [0, 1, 2, 3, 4, 5]
    assert [item.raw.sequence for item in own] == [10, 11, 12, 13, 14, 15]
    assert [item.payload.speed > 1 for item in own] == [False, False, True, False, True, False]
    assert all(item.log_ns - item.capture_ns == 5 for item in own)
    assert [i for i in found if i.source == "b"] == [
        i for i in source_messages() if i.source == "b"
    ]
    assert [item.log_ns for item in found] == sorted(item.log_ns for item in found)
    assert applied.times_ns == [STEP_NS]


def test_what_comes_on_top_of_the_last_message_comes_too():
    found = list(spoilt(source_messages(2, "a"), [fault("twice", frame=1, by=5.0)], Applied()))
    assert [item.sequence for item in found] == [0, 1, 2]
