import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.errors import DamagedInputError, InputError, SpecError
from avrt.logs import Series, SeriesReader
from avrt.logs.decode import decode, parse
from avrt.logs.ros.message import header
from avrt.logs.ros.types import HEADER, IMAGE, TWIST
from avrt.payload import Speed

TIMES = np.array([10, 20, 30], np.int64)


def speeds(topic="/speed", times=TIMES, make=lambda index: Speed(float(index)), **more):
    return Series(topic, TWIST, "vehicle", times, make, **more)


def taken(reader, topics=None):
    return [(raw.topic, raw.log_ns, raw.sequence) for raw in reader.messages(topics)]


def test_series_are_merged_by_log_time_and_equal_ones_by_the_order_of_the_series():
    reader = SeriesReader("a log", [speeds(), speeds("/other", np.array([5, 20, 20]))])
    assert taken(reader) == [
        ("/other", 5, 0),
        ("/speed", 10, 0),
        ("/speed", 20, 1),
        ("/other", 20, 1),
        ("/other", 20, 2),
        ("/speed", 30, 2),
    ]


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=4))
def test_any_series_come_by_log_time_then_series_then_place_and_each_message_once(times):
    names = [f"/{number}" for number in range(len(times))]
    reader = SeriesReader(
        "a log",
        [speeds(name, np.array(one, np.int64)) for name, one in zip(names, times, strict=True)],
    )
    rows = [
        (at, name, i) for name, one in zip(names, times, strict=True) for i, at in enumerate(one)
    ]
    assert taken(reader) == [(name, at, i) for at, name, i in sorted(rows)]
    for name, one in zip(names, times, strict=True):
        assert reader.log_times()[name].tolist() == sorted(one)
        assert [at for _, at, _ in taken(reader, [name])] == sorted(one)


def test_messages_come_in_the_order_in_which_they_were_recorded():
    reader = SeriesReader("a log", [speeds(log_ns=np.array([50, 40, 60]))])
    found = [(raw.log_ns, decode(raw, "can")) for raw in reader.messages()]
    assert [(at, one.header_ns, one.payload.speed) for at, one in found] == [
        (40, 20, 1.0), (50, 10, 0.0), (60, 30, 2.0),
    ]  # fmt: skip


def test_a_message_is_made_when_its_turn_comes():
    made = []

    def make(index):
        made.append(index)
        return Speed(0.0)

    messages = SeriesReader("a log", [speeds(make=make)]).messages()
    assert made == []
    next(messages)
    assert made == [0]


def test_a_whole_message_is_taken_as_it_is():
    series = Series("/head", HEADER, "", TIMES, lambda _index: header(7, "mast"))
    (first, *_) = SeriesReader("a log", [series]).messages()
    assert parse(first).frame_id == "mast"


@pytest.mark.parametrize(
    "error", [InputError("expected more", "the file"), FileNotFoundError("a.bin"), ValueError("x")]
)
def test_a_message_that_cannot_be_made_costs_itself_and_is_told(error):
    def make(index):
        if index == 1:
            raise error
        return Speed(0.0)

    reader = SeriesReader("a log", [speeds(make=make)])
    messages = []
    with pytest.raises(DamagedInputError) as caught:
        messages.extend(reader.messages())
    assert [raw.sequence for raw in messages] == [0, 2]
    assert caught.value.good_messages == 2
    told = {anomaly.kind: (anomaly.topic, anomaly.count) for anomaly in reader.anomalies}
    assert told == {"damaged": (None, 1), "lost": ("/speed", 1)}
    assert reader.topics()["/speed"].messages == 3


def test_a_bug_in_a_format_is_not_taken_for_damage():
    reader = SeriesReader("a log", [speeds(make=lambda _index: {}["speed"])])
    with pytest.raises(KeyError):
        list(reader.messages())


def test_a_topic_that_cannot_be_read_is_told_beside_the_good_ones():
    damaged = Series.damaged("/image", IMAGE, InputError("expected a file", "video"))
    reader = SeriesReader("a log", [speeds(), damaged])
    with pytest.raises(DamagedInputError, match="video: expected a file"):
        list(reader.messages(["/speed"]))
    with pytest.raises(InputError, match="video"):
        SeriesReader("a log", [damaged])


@pytest.mark.parametrize(
    ("series", "what"),
    [
        ([speeds(), speeds()], "a series for each topic"),
        ([Series("/words", "my/msg/Word", "", TIMES, str)], "a message type that avrt knows"),
    ],
)
def test_topics_that_can_be_none_are_refused(series, what):
    with pytest.raises(SpecError, match=what):
        SeriesReader("a log", series)


@pytest.mark.parametrize(
    ("times", "more"),
    [(TIMES / 1e9, {}), (TIMES[:, None], {}), (TIMES, {"log_ns": TIMES[:2]})],
)
def test_times_are_whole_numbers_one_for_each_message(times, more):
    with pytest.raises(SpecError, match=r"/speed: expected (stamp|log)_ns to be \(3,\) whole"):
        speeds(times=times, **more)


def test_what_is_made_has_to_be_of_the_type_of_its_series():
    reader = SeriesReader("a log", [Series("/image", IMAGE, "", TIMES, lambda _: Speed(0.0))])
    with pytest.raises(SpecError, match="messages of sensor_msgs/msg/Image, found one of geom"):
        list(reader.messages())
