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
from avrt.logs.journal import Checker, Entry, parse_entry
from avrt.logs.recorded import read_pipeline
from avrt.logs.run_file import RunFile
from avrt.model.codec import encode, to_json

if TYPE_CHECKING:
    from pathlib import Path

    from avrt.logs.run_file import Line

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
        InputError: the file is no run record, or its pipeline is damaged.
    """
    with RunFile(path) as run:
        kernel = Kernel(read_pipeline(run, path))
        checker = Checker()
        count = 0
        difference = None
        for line in run.journal():
            difference = _compare(kernel, checker, line, count)
            if difference is not None:
                break
            count += 1
        if difference is None:
            difference = _compare_digest(run, checker, count, kernel.now_ns)
        damage = tuple(str(error) for error in run.damage)
        complete = run.complete and "decisions" in (run.result or {})
        return Verification(count, difference, complete, checker.digest, damage)


def _compare(kernel: Kernel, checker: Checker, line: Line, index: int) -> Difference | None:
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
    difference = _compare_commands(entry, [to_json(encode(c)) for c in commands])
    if difference is not None:
        return difference
    expected = checker.line(entry)
    if line.text == expected:
        return None
    place = next(i for i, pair in enumerate(zip_longest(expected, line.text)) if len(set(pair)) > 1)
    return Difference(index, entry.at_ns, _around(expected, place), _around(line.text, place))


def _around(text: str, place: int) -> str:
    """Return the part of a line where it differs."""
    return f"... {text[max(0, place - SHOWN_CHARS) : place + SHOWN_CHARS]} ..."


def _compare_commands(entry: Entry, expected: list[str]) -> Difference | None:
    found = [to_json(encode(command)) for command in entry.commands]
    for place in range(max(len(expected), len(found))):
        want = expected[place] if place < len(expected) else "no further command"
        have = found[place] if place < len(found) else "no further command"
        if want != have:
            return Difference(entry.index, entry.at_ns, want, have)
    return None


def _compare_digest(run: RunFile, checker: Checker, count: int, at_ns: int) -> Difference | None:
    recorded = run.result.get("decisions") if run.complete and run.result else None
    if recorded is None or recorded == checker.digest:
        return None
    return Difference(count, at_ns, f"digest {checker.digest}", f"digest {recorded}")
