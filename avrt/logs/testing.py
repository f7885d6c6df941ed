"""What every reader of logs keeps to, as tests that a format of your own can run under pytest.

    class TestMyFormat(LogContract):
        open_log = staticmethod(MY_FORMAT.open)  # by itself once its package is installed

        @pytest.fixture
        def log(self, tmp_path):
            return write_my_log(tmp_path / "log.csv")

`log` is the path of a whole log with messages on at least one topic, and `damaged_log` that of one
of which a part is good. Readers of avrt run the same tests (tests/logs/test_contract.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from avrt.errors import DamagedInputError, InputError
from avrt.logs.decode import READERS, decode, parse, why_unreadable
from avrt.logs.reader import open_log
from avrt.logs.ros.types import known_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from avrt.logs.raw import RawMessage, TopicInfo
    from avrt.logs.reader import LogFile

KEPT_MAX = 4
"""Messages that a reader may still hold when the next one is asked for: its generators' own."""
Seen = tuple[str, str, int, int, int, bytes]


class LogContract:
    """The rules for a whole log; a subclass gives the fixture `log`."""

    open_log: Callable[[Path], LogFile] = staticmethod(open_log)

    def test_it_says_what_it_is(self, log: Path) -> None:
        with self.open_log(log) as reader:
            assert reader.format
            assert reader.topics()

    def test_messages_come_in_the_order_of_their_log_times(self, log: Path) -> None:
        with self.open_log(log) as reader:
            times = [raw.log_ns for raw in reader.messages()]
        assert times
        assert times == sorted(times)

    def test_topics_tell_how_many_messages_there_are_and_of_which_type(self, log: Path) -> None:
        with self.open_log(log) as reader:
            topics = reader.topics()
            counts = dict.fromkeys(topics, 0)
            for raw in reader.messages():
                counts[raw.topic] += 1
                assert topics[raw.topic].encoding == raw.channel.encoding
                assert topics[raw.topic].type == raw.type
        assert counts == {name: info.messages for name, info in topics.items()}

    def test_reading_again_gives_the_same(self, log: Path) -> None:
        with self.open_log(log) as reader:
            first, again = _seen(reader.messages()), _seen(reader.messages())
        with self.open_log(log) as reader:
            anew = _seen(reader.messages())
        assert first == again == anew

    def test_two_readings_at_once_do_not_disturb_each_other(self, log: Path) -> None:
        with self.open_log(log) as reader:
            pairs = zip(reader.messages(), reader.messages(), strict=True)
            assert all(_key(one) == _key(other) for one, other in pairs)

    def test_chosen_topics_come_alone_and_in_the_same_order(self, log: Path) -> None:
        with self.open_log(log) as reader:
            everything = _seen(reader.messages())
            for topic in reader.topics():
                expected = [seen for seen in everything if seen[0] == topic]
                assert _seen(reader.messages([topic])) == expected
            assert _seen(reader.messages(reader.topics())) == everything
            assert _seen(reader.messages([])) == []
            assert _seen(reader.messages(["/no/such/topic"])) == []

    def test_log_times_are_those_of_the_messages(self, log: Path) -> None:
        with self.open_log(log) as reader:
            times = reader.log_times()
            if times is None:
                return
            expected: dict[str, list[int]] = {}
            for raw in reader.messages():
                expected.setdefault(raw.topic, []).append(raw.log_ns)
        found = {topic: np.sort(part).tolist() for topic, part in times.items() if len(part)}
        assert found == expected

    def test_messages_that_were_taken_are_not_kept(self, log: Path) -> None:
        with self.open_log(log) as reader:
            held: list[ref[RawMessage]] = []
            for raw in reader.messages():
                held = [*(message for message in held if message() is not None), ref(raw)]
                del raw
                assert len(held) <= KEPT_MAX

    def test_messages_of_known_types_can_be_decoded(self, log: Path) -> None:
        with self.open_log(log) as reader:
            topics = reader.topics()
            for raw in reader.messages():
                _decode(raw, topics[raw.topic])

    def test_closing_twice_is_harmless(self, log: Path) -> None:
        with self.open_log(log) as reader:
            assert next(iter(reader.messages())).topic
            reader.close()


class DamagedLogContract:
    """The rules for a log of which a part is good; a subclass gives the fixture `damaged_log`."""

    open_log: Callable[[Path], LogFile] = staticmethod(open_log)

    def test_damage_is_told_after_everything_good(self, damaged_log: Path) -> None:
        with self.open_log(damaged_log) as reader:
            good, error = _read(reader)
            assert isinstance(error, DamagedInputError), error
            assert error.good_messages == len(good) > 0
            assert error.place
            assert "damaged" in {anomaly.kind for anomaly in reader.anomalies}
        times = [seen[2] for seen in good]
        assert times == sorted(times)

    def test_delivered_and_lost_add_up_to_what_was_promised(self, damaged_log: Path) -> None:
        with self.open_log(damaged_log) as reader:
            good, _ = _read(reader)
            counts = {name: -info.messages for name, info in reader.topics().items()}
            for seen in good:
                counts[seen[0]] += 1
            for anomaly in reader.anomalies:
                if anomaly.kind in {"lost", "miscounted"} and anomaly.topic is not None:
                    counts[anomaly.topic] += anomaly.count * (1 if anomaly.kind == "lost" else -1)
        assert counts == dict.fromkeys(counts, 0)

    def test_reading_again_tells_the_same(self, damaged_log: Path) -> None:
        with self.open_log(damaged_log) as reader:
            first = *_read(reader), [str(anomaly) for anomaly in reader.anomalies]
            again = *_read(reader), [str(anomaly) for anomaly in reader.anomalies]
        assert first[0] == again[0]
        assert str(first[1]) == str(again[1])
        assert first[2] == again[2]


def _key(raw: RawMessage) -> Seen:
    """Return all that a message says."""
    return raw.topic, raw.type, raw.log_ns, raw.publish_ns, raw.sequence, bytes(raw.data)


def _seen(messages: Iterable[RawMessage]) -> list[Seen]:
    return [_key(raw) for raw in messages]


def _read(reader: LogFile) -> tuple[list[Seen], InputError | None]:
    """Return the messages of a log, and why there are no more."""
    found: list[Seen] = []
    try:
        found.extend(map(_key, reader.messages()))
    except InputError as error:
        return found, error
    return found, None


def _decode(raw: RawMessage, info: TopicInfo) -> None:
    """Decode a message as every kind of source that reads its topic; one of them has to succeed."""
    kinds = [kind for kind in READERS if not why_unreadable(info, kind)]
    if not kinds:
        if raw.channel.encoding == "cdr" and raw.type in known_types().fielddefs:
            parse(raw)
        return
    errors = []
    for kind in kinds:
        try:
            assert decode(raw, kind).stamp_valid, f"{raw.topic}: a stamp that can be no time"
        except InputError as error:
            errors.append(error)
    assert len(errors) < len(kinds), errors[0]
