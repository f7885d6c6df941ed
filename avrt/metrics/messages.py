"""The messages of one source against its declared period and the jitter of its readers.

With the declared jitter J and period P a row of arrivals is legal if nominal ones exist at least P
apart, each followed by its own within J; taking every nominal arrival as early as it can be decides
that without knowing them. A message comes the source's latency after its capture, or up to J later.
Under a table message k is nominally captured at k periods from time 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.metrics.broken import Broken
from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.model.events import Arrived
    from avrt.model.spec import PipelineSpec, SourceSpec


class Messages:
    """Judges the messages of one source as they come.

    A reader that samples declares no jitter; the end of a chain counts on the arrival then.
    """

    def __init__(self, spec: PipelineSpec, source: SourceSpec) -> None:
        self._source = source
        triggered = [
            stage
            for stage in spec.stages
            if stage.trigger_input is not None and stage.trigger_input.source == source.name
        ]
        matched = [
            stage
            for stage in spec.stages
            if stage.sync is not None and source.name in [item.source for item in stage.inputs]
        ]
        readers = [s for s in spec.stages if source.name in [item.source for item in s.inputs]]
        released = [*triggered, *matched]
        self._jitter_ns = min((s.jitter_ns if s in released else 0 for s in readers), default=0)
        self._release_jitter_ns = min((stage.jitter_ns for stage in triggered), default=None)
        by_capture = any(s.sync or s.deadline_from == "capture" for s in spec.stages)
        limits = [stage.jitter_ns for stage in released if by_capture]
        self._delay_ns = min(limits, default=NEVER_NS)
        self._matched = bool(matched)
        self._in_phase = spec.table is not None and bool(released) and source.period_ns is not None
        self._index = -1
        self._last_ns: int | None = None
        self._nominal_ns = -NEVER_NS
        self._capture_ns: int | None = None

    def take(self, event: Arrived, at_ns: int) -> Iterator[tuple[Broken, bool]]:
        """Yield what is not as declared, and whether it concerns chains only."""
        self._index += 1
        late = self._out_of_phase(self._index, at_ns) if self._in_phase else None
        if late is not None:
            yield late, False
        for broken in self._rate(min(event.log_ns, at_ns)):
            yield broken, False
        yield from self._captured(event.capture_ns, at_ns)

    def absence(self, until_ns: int) -> Broken | None:
        """Return that by a table the next message should have come by then and did not."""
        late = self._out_of_phase(self._index + 1, until_ns) if self._in_phase else None
        return None if late is None or until_ns <= late.at_ns else late

    def silence(self, until_ns: int) -> Broken | None:
        """Return that the next message should have been captured by then and was not."""
        period_ns, capture_ns = self._source.period_ns, self._capture_ns
        if period_ns is None or capture_ns is None or until_ns <= capture_ns + period_ns:
            return None
        found_ns, at_ns = until_ns - capture_ns, capture_ns + period_ns
        if found_ns <= period_ns + self._source.latency_ns + self._jitter_ns:
            return None
        return Broken("gap", self._source.name, self._index + 1, at_ns, period_ns, found_ns)

    def _out_of_phase(self, index: int, at_ns: int) -> Broken | None:
        """Return that a message does not come then by a table."""
        assert self._source.period_ns is not None
        planned_ns = index * self._source.period_ns + self._source.latency_ns
        latest_ns = planned_ns + self._jitter_ns
        if planned_ns <= at_ns <= latest_ns:
            return None
        passed_ns = min(at_ns, latest_ns)
        return Broken("phase", self._source.name, index, passed_ns, planned_ns, at_ns)

    def _rate(self, at_ns: int) -> Iterator[Broken]:
        """Yield that a message came too close to the one before."""
        jitter_ns, period_ns = self._release_jitter_ns, self._source.period_ns
        if jitter_ns is None or period_ns is None:
            return
        nominal_ns = max(self._nominal_ns + period_ns, at_ns - jitter_ns)
        if nominal_ns > at_ns:
            last_ns = at_ns if self._last_ns is None else self._last_ns
            yield Broken(
                "rate", self._source.name, self._index, at_ns, period_ns, at_ns - last_ns, "arrival"
            )
            nominal_ns = at_ns
        self._nominal_ns, self._last_ns = nominal_ns, at_ns

    def _captured(self, capture_ns: int, at_ns: int) -> Iterator[tuple[Broken, bool]]:
        name, period_ns, jitter_ns = self._source.name, self._source.period_ns, self._jitter_ns
        late_ns = at_ns - capture_ns - self._source.latency_ns
        if not 0 <= late_ns <= jitter_ns:
            declared_ns = self._source.latency_ns + jitter_ns
            passed_ns = min(at_ns, capture_ns + declared_ns)
            is_harmless = late_ns <= self._delay_ns and (late_ns >= 0 or self._delay_ns == NEVER_NS)
            yield (
                Broken("delay", name, self._index, passed_ns, declared_ns, at_ns - capture_ns),
                is_harmless and not self._in_phase,
            )
        before_ns, self._capture_ns = self._capture_ns, capture_ns
        if before_ns is None or period_ns is None:
            return
        apart_ns = capture_ns - before_ns
        if apart_ns > period_ns:
            since_ns = before_ns + period_ns
            yield (
                Broken("gap", name, self._index, since_ns, period_ns, apart_ns),
                not self._in_phase,
            )
        elif apart_ns < period_ns and self._matched:
            yield Broken("rate", name, self._index, at_ns, period_ns, apart_ns, "capture"), False
