"""The log's own time, message by message: what shares one, and what cannot be one.

* Messages of one log time come together, in the order of the log, but not those of two runs.
* A time before zero or after `LOG_NS_MAX` is none: its message is lost and told.
* No drive has a hole of `GAP_NS_MAX`; timer stages would be released all through it. When such a
  hole follows the very first log time, it is that time which is wrong, and its messages are lost.
  Anywhere else the log ends there, and whoever reads it is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.errors import DamagedInputError
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from avrt.logs.raw import RawMessage

    Lose = Callable[[RawMessage, str], None]

GAP_NS_MAX = 24 * 3600 * NS_PER_S
LOG_NS_MAX = 1 << 62  # the year 2116


def simultaneous(messages: Iterable[RawMessage], lose: Lose) -> Iterator[list[RawMessage]]:
    """Yield the messages of one log time together; `lose` takes those without one, and why.

    Raises:
        DamagedInputError: after the last good message, when the log is damaged or has a hole.
    """
    group: list[RawMessage] = []
    good_messages = 0
    damage: DamagedInputError | None = None
    try:
        for raw in messages:
            if not can_be_logged_at(raw.log_ns):
                lose(raw, f"log time {raw.log_ns} ns is none")
                continue
            if group and (raw.run, raw.log_ns) != (group[0].run, group[0].log_ns):
                hole = hole_between(group[0], raw)
                if hole and good_messages:
                    damage = DamagedInputError(hole, raw.topic, good_messages + len(group))
                    break
                if hole:
                    for message in group:
                        lose(message, hole)
                else:
                    yield group
                    good_messages += len(group)
                group = []
            group.append(raw)
    except DamagedInputError as error:
        damage = error
    if group:
        yield group
    if damage is not None:
        raise damage


def can_be_logged_at(log_ns: int) -> bool:
    """Whether a number can be a log time at all."""
    return 0 <= log_ns <= LOG_NS_MAX


def hole_between(before: RawMessage, after: RawMessage) -> str:
    """Return what is wrong when a message comes so long after another of its run; "" if nothing."""
    gap_ns = after.log_ns - before.log_ns if after.run == before.run else 0
    if gap_ns <= GAP_NS_MAX:
        return ""
    return (
        f"log time jumps {format_ns(gap_ns)} ahead at {after.log_ns} ns; "
        f"expected less than {format_ns(GAP_NS_MAX)} between messages"
    )
