"""What is known of one topic while its messages go by."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from avrt.errors import InputError
from avrt.logs.clock_map import ClockMap
from avrt.logs.decode import INFO, READERS, decode, why_unreadable
from avrt.logs.ros.types import CLOUD, TRANSFORMS
from avrt.logs.survey.stamp import read_stamp
from avrt.logs.survey.steps import Steps
from avrt.payload import Targets
from avrt.units import format_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.logs.raw import Anomalies, RawMessage, TopicInfo

LAG_SPREAD_NS = 100_000_000  # what a sensor and its bus do not vary by, a recorder that stalls does
STAMPS_MIN = 16
FRAMES_KEPT = 8
TRIED = 3  # messages of a topic that are decoded, to see whether they can be


class Lag(NamedTuple):
    """Log time less stamp, ns."""

    min_ns: int
    median_ns: int
    max_ns: int


class TopicSurvey:
    """One topic of one type.

    Attributes:
        messages: how many the log promises.
        read: how many were looked at, and `size_bytes` what they have together.
        kinds: the kinds of source that read it.
        unreadable: why none does; "" where one does.
        log, stamps: figures of log times and of the sensor's own stamps; None where there are none.
        lag: log time less stamp.
        frames: those its messages name, in order.
        targets: it is a cloud of radar targets: its points have a speed of their own.
    """

    def __init__(self, topic: str, info: TopicInfo, kind: str, encoding: str) -> None:
        """Begin with what the log says of the topic, and one of its types and encodings."""
        info = replace(info, type=kind, encoding=encoding)
        self.topic = topic
        self.type = kind
        self.encoding = encoding
        self.messages = info.messages
        self.read = 0
        self.size_bytes = 0
        self.frames: list[str] = []
        self.targets = False
        why = {kind: why_unreadable(info, kind) for kind in READERS}
        self.kinds = [kind for kind, what in why.items() if not what]
        self.unreadable = "" if self.kinds else _why(info, why)
        self.log: Steps | None = None
        self.stamps: Steps | None = None
        self.lag: Lag | None = None
        self._clocks: dict[tuple[int, str], ClockMap] = {}
        self._log_ns = array("q")
        self._stamps_ns = array("q")
        self._stamped_at_ns = array("q")
        self._before = (0, 0, 0)
        self._tried = 0

    @property
    def kind(self) -> str:
        """The kind of source that it most likely is; "" where none reads it."""
        named = any("radar" in name.lower() for name in (self.topic, *self.frames))
        if "radar" in self.kinds and (self.targets or named):
            return "radar"
        return self.kinds[0] if self.kinds else ""

    @property
    def steps(self) -> Steps | None:
        """The figures of its stamps where all of them were read, else of its log times."""
        whole = self.stamps is not None and self.read >= self.messages
        return self.stamps if whole else self.log

    def see(self, raw: RawMessage, anomalies: Anomalies) -> None:
        """Take in the next message, and tell what is odd about it."""

        def tell(kind: str, detail: str) -> None:
            anomalies.add(kind, raw.topic, raw.log_ns, detail)

        self.read += 1
        self.size_bytes += len(raw.data)
        self._log_ns.append(raw.log_ns)
        before, self._before = self._before, (raw.run, raw.log_ns, crc32(raw.data))
        if self.read > 1 and before == self._before:
            tell("repeated", "the message before, again: same time, same bytes")
        if self.kinds and self._tried < TRIED:
            self._try(raw, anomalies)
        stamp = read_stamp(raw)
        if stamp is None:
            return None
        if stamp.frame not in self.frames and len(self.frames) < FRAMES_KEPT:
            self.frames.append(stamp.frame)
        if stamp.ns is None:
            return tell("stamp_invalid", "the stamp can be no time")
        self._stamps_ns.append(stamp.ns)
        self._stamped_at_ns.append(raw.log_ns)
        clock = self._clocks.setdefault((raw.run, raw.channel.writer), ClockMap())
        clock.capture_ns(stamp.ns, raw.log_ns, tell)
        return None

    def close(self, indexed: NDArray[np.int64] | None, anomalies: Anomalies) -> None:
        """Make the figures; `indexed` are the log times that the log's index tells of."""
        self.log = Steps.of(self._log_ns if indexed is None else indexed)
        self.stamps = Steps.of(self._stamps_ns)
        if self.stamps is not None:
            lags = np.subtract(self._stamped_at_ns, self._stamps_ns, dtype=np.int64)
            self.lag = Lag(int(lags.min()), int(np.median(lags)), int(lags.max()))
            self._tell_bursts(self.stamps, lags, anomalies)
        if self.log is not None and self.log.equal and self.steps is self.log:
            what = "has the log time of the one before: they were logged together"
            anomalies.add("same_time", self.topic, None, what, self.log.equal)
        self._tell_missing(anomalies)

    def _try(self, raw: RawMessage, anomalies: Anomalies) -> None:
        """Decode a message, to tell whether it can be and what is in it."""
        self._tried += 1
        try:
            if self.type == CLOUD:
                payload = decode(raw, "radar").payload
                assert isinstance(payload, Targets)
                self.targets |= bool(np.isfinite(payload.range_rate).any())
                self.targets |= bool(np.isfinite(payload.velocity).any())
            decode(raw, self.kinds[0])
        except InputError as error:
            anomalies.add("undecodable", raw.topic, raw.log_ns, str(error))

    def _tell_bursts(self, stamps: Steps, lags: NDArray[np.int64], anomalies: Anomalies) -> None:
        if stamps.count < STAMPS_MIN or stamps.back:
            return
        if any(clock.epoch for clock in self._clocks.values()):
            return
        low, high = np.percentile(lags, (1, 99))
        if high - low > max(LAG_SPREAD_NS, 2 * stamps.median_ns):
            least, most = format_ns(int(lags.min())), format_ns(int(lags.max()))
            what = f"messages came {least} to {most} after their stamps: they were logged in bursts"
            anomalies.add("bursts", self.topic, None, what)

    def _tell_missing(self, anomalies: Anomalies) -> None:
        steps = self.steps
        if steps is None or not steps.missing:
            return
        if any((kind, self.topic) in anomalies for kind in ("stamp_gap", "stamp_jump", "loop")):
            return
        what = (
            f"a step of {format_ns(steps.max_ns)}, where {format_ns(steps.median_ns)} is usual: "
            f"room for {steps.missing} in all"
        )
        anomalies.add("missing", self.topic, steps.longest_at_ns, what, steps.missing)


def _why(info: TopicInfo, why: dict[str, str]) -> str:
    """Return why no kind of source reads a topic: of its own type, where a reader knows it."""
    if info.type == TRANSFORMS:
        return ""
    for kind, readers in READERS.items():
        if info.type in readers:
            return why[kind]
    return why[INFO] if "packets" in why[INFO] else f"no source reads {info.type or 'no type'}"
