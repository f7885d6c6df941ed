"""The journal: every call of the kernel, its events and its commands, in order.

One entry is one JSON line with the keys index, at_ns, calls (events, commands) and check. The
check is the start of a running SHA-256 over all entries so far, so any damaged byte of any entry is
found where it is; the last one is the digest of decisions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.model.codec import decode_command, decode_event, encode, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.model.commands import Command
    from avrt.model.events import Event

    Watch = Callable[[int, Sequence[Event], Sequence[Command]], None]

CHECK_DIGITS = 16


class Journal:
    """Notes calls of the kernel.

    Args:
        write: takes `(at_ns, line)` of each entry; None keeps the digest only.
        listen: takes `(at_ns, commands)` of each entry, for figures drawn while the run goes on.
        watch: takes `(at_ns, events, commands)`, for what cannot be told from commands alone.
    """

    def __init__(
        self,
        write: Callable[[int, str], None] | None = None,
        listen: Callable[[int, Sequence[Command]], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._write = write
        self._listen = listen
        self._watch = watch
        self._hash = hashlib.sha256()
        self._entries = 0

    def note(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> str:
        """Take one call of the kernel into the running check; return its line."""
        body = to_json([[encode(event) for event in events], [encode(c) for c in commands]])
        self._hash.update(f"{self._entries},{at_ns},{body};".encode())
        line = f'{{"index":{self._entries},"at_ns":{at_ns},"calls":{body},"check":"{self.check}"}}'
        self._entries += 1
        if self._write is not None:
            self._write(at_ns, line)
        if self._listen is not None:
            self._listen(at_ns, commands)
        if self._watch is not None:
            self._watch(at_ns, events, commands)
        return line

    @property
    def check(self) -> str:
        """The running check after the newest entry."""
        return self.digest[:CHECK_DIGITS]

    @property
    def digest(self) -> str:
        """SHA-256 of all decisions so far, as hexadecimal digits."""
        return self._hash.hexdigest()


def all_of(*watches: Watch | None) -> Watch:
    """Return what tells several listeners of each call."""
    present = [watch for watch in watches if watch is not None]

    def watch(at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
        for one in present:
            one(at_ns, events, commands)

    return watch


@dataclass(frozen=True, slots=True)
class Entry:
    """One call of the kernel as it was recorded."""

    index: int
    at_ns: int
    events: tuple[Event, ...]
    commands: tuple[Command, ...]
    check: str


def parse_entry(line: str) -> Entry:
    """Return the entry of one journal line.

    Raises:
        ValueError: the line is damaged; says what was expected.
    """
    data = from_json(line)
    if not isinstance(data, dict) or list(data) != ["index", "at_ns", "calls", "check"]:
        raise ValueError("expected an entry with index, at_ns, calls and check")
    index, at_ns, calls, check = data.values()
    match index, at_ns, calls, check:
        case int(), int(), [list() as events, list() as commands], str():
            pass
        case _:
            raise ValueError("expected integers, a list of events and one of commands, and text")
    return Entry(
        index,
        at_ns,
        tuple(decode_event(event) for event in events),
        tuple(decode_command(command) for command in commands),
        check,
    )
