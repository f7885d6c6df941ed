"""The messages of a drive held in memory, so that every run of a campaign reads the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from avrt.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.logs.raw import Anomaly, RawMessage, TopicInfo

BYTES_MAX = 1 << 31


@dataclass(slots=True)
class HeldLog:
    """A log reader like any other, over messages in the order of a log."""

    infos: Mapping[str, TopicInfo]
    raws: Sequence[RawMessage]
    anomalies: list[Anomaly] = field(default_factory=list)

    def topics(self) -> dict[str, TopicInfo]:
        return dict(self.infos)

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[RawMessage]:
        wanted = set(self.infos if topics is None else topics)
        return (raw for raw in self.raws if raw.topic in wanted)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def held(
    infos: Mapping[str, TopicInfo], raws: Iterable[RawMessage], anomalies: Iterable[Anomaly] = ()
) -> HeldLog:
    """Return messages as a log in memory.

    Raises:
        SpecError: they are too many.
    """
    kept: list[RawMessage] = []
    size_bytes = 0
    for raw in raws:
        size_bytes += len(raw.data)
        if size_bytes > BYTES_MAX:
            what = f"the drive holds more than {BYTES_MAX >> 20} MiB; cut it, it is held in memory"
            raise SpecError(what, ("log",))
        kept.append(raw)
    return HeldLog(infos, kept, list(anomalies))
