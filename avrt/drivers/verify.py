"""Verification: the recorded events through a fresh kernel, compared decision for decision.

An entry differs when the kernel refuses its events, when the commands are not those recorded, or
when any character of its line, the running check included, is not what it must be. The first
difference is named and ends the verification. A chunk with a wrong CRC is damage of the file; its
entries are compared like all others, so that the one that differs is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from avrt.errors import KernelError
from avrt.kernel import Kernel
from avrt.logs.record.journal import Entry, Journal, parse_entry
from avrt.logs.record.recorded import check_whole, read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.model.codec import encode, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from avrt.logs.record.run_file import Line
    from avrt.model.commands import Command

SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """The first entry that is not what a fresh kernel decides."""

    index: int
    at_ns: int
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying a run record found.

    Attributes:
        complete: the run ended and closed its record, so that its digest was compared.
        damage: what is wrong with the file outside the entries compared.
    """

    entries: int
    difference: Difference | None
    complete: bool
    digest: str
    damage: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether every entry is what a fresh kernel decides, and the record is whole."""
        return self.difference is None and not self.damage and self.complete


def verify(path: str | Path) -> Verification:
    """Compare a recorded run with a fresh kernel.

    Raises:
        InputError: the file is no record of a whole run, or its pipeline is damaged.
    """
    with RunFile(path) as run:
        check_whole(run, path)
        kernel = Kernel(read_pipeline(run, path))
        journal = Journal()
        count = 0
        difference = None
        for line in run.journal():
            difference = _compare(kernel, journal, line, count)
            if difference is not None:
                break
            count += 1
        if difference is None:
            difference = _compare_digest(run, journal, count, kernel.now_ns)
        damage = tuple(str(error) for error in run.damage)
        complete = run.complete and "decisions" in (run.result or {})
        return Verification(count, difference, complete, journal.digest, damage)


def _compare(kernel: Kernel, journal: Journal, line: Line, index: int) -> Difference | None:
    try:
        entry = parse_entry(line.text)
    except ValueError as error:
        return Difference(index, line.at_ns, f"an entry that reads: {error}", line.text[:200])
    if (entry.index, entry.at_ns) != (index, line.at_ns):
        want, have = f"{index} at {line.at_ns} ns", f"{entry.index} at {entry.at_ns} ns"
        return Difference(index, line.at_ns, f"entry {want}", f"entry {have}")
    try:
        commands = kernel.handle(entry.at_ns, entry.events)
    except KernelError as error:
        return Difference(index, entry.at_ns, "events that may come now", str(error))
    expected = journal.note(entry.at_ns, entry.events, commands)
    if line.text == expected:
        return None
    difference = _compare_commands(entry, commands)
    if difference is not None:
        return difference
    place = next(i for i, pair in enumerate(zip_longest(expected, line.text)) if len(set(pair)) > 1)
    return Difference(index, entry.at_ns, _around(expected, place), _around(line.text, place))


def _around(text: str, place: int) -> str:
    """Return the part of a line where it differs."""
    return f"... {text[max(0, place - SHOWN_CHARS) : place + SHOWN_CHARS]} ..."


def _compare_commands(entry: Entry, commands: Sequence[Command]) -> Difference | None:
    expected, found = ([to_json(encode(c)) for c in side] for side in (commands, entry.commands))
    for want, have in zip_longest(expected, found, fillvalue="no further command"):
        if want != have:
            return Difference(entry.index, entry.at_ns, want, have)
    return None


def _compare_digest(run: RunFile, journal: Journal, count: int, at_ns: int) -> Difference | None:
    recorded = run.result.get("decisions") if run.complete and run.result else None
    if recorded is None or recorded == journal.digest:
        return None
    return Difference(count, at_ns, f"digest {journal.digest}", f"digest {recorded}")
