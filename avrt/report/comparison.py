"""Two run records compared: what was different before they ran, and what came of it.

Figures are compared whatever the pipelines; decisions only when the pipelines are equal, because
only then the first decision that differs tells something.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.logs.record.run_file import RunFile
from avrt.model.codec import encode
from avrt.report.choices import Difference, first_difference
from avrt.report.side_by_side import Pair
from avrt.report.summary import read_summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from avrt.logs.record.run_file import Line
    from avrt.report.summary import RunSummary

NAMES = ("a", "b")
SHOWN_CHARS = 160
Values = dict[str, tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first journal entry that is not the same in both runs; None where a run has ended.

    Attributes:
        place: the first character that differs.
    """

    index: int
    at_ns: tuple[int | None, int | None]
    texts: tuple[str | None, str | None]
    place: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        conditions: what differs between their conditions, as (a, b).
        pipeline: what differs between their pipelines, by path of keys.
        divergence: the first difference of decisions; None if the pipelines differ.
        choices: the first choice that differs, times aside; None if the pipelines differ, too.
        jobs: how many jobs were compared for that.
    """

    a: RunSummary
    b: RunSummary
    conditions: Values
    pipeline: Values
    divergence: Divergence | None
    choices: Difference | None = None
    jobs: int = 0

    @property
    def equal(self) -> bool:
        """Whether both runs had the same pipeline and the same whole journal."""
        return not self.pipeline and self.divergence is None

    @property
    def damage(self) -> list[str]:
        """What is wrong with either record."""
        return [f"{run.record}: {text}" for run in (self.a, self.b) for text in run.damage]

    def data(self) -> dict[str, object]:
        """Return the comparison object: plain data, times in ns."""
        return {
            "a": self.a.record,
            "b": self.b.record,
            "equal": self.equal,
            "conditions": _pairs(self.conditions),
            "pipeline": _pairs(self.pipeline),
            "decisions": dict(zip(NAMES, (self.a.decisions, self.b.decisions), strict=True)),
            "divergence": None if self.divergence is None else _divergence(self.divergence),
            "choices": None if self.choices is None else _choices(self.choices),
            **self._pair().data(),
            "damage": self.damage,
        }

    def render(self) -> RenderableType:
        """Return everything for a terminal."""
        pair = self._pair()
        parts: list[RenderableType] = [Text(f"a  {self.a.record}\nb  {self.b.record}")]
        for title, values in (
            ("What differs in the pipelines", self.pipeline),
            ("Conditions that differ", self.conditions),
        ):
            if values:
                parts.append(_value_table(title, values))
        parts.append(pair.stage_table())
        if self.a.figures.chains or self.b.figures.chains:
            parts.append(pair.chain_table())
        parts += [Text(f"damaged: {problem}", style="red") for problem in self.damage]
        parts += [Text(line) for line in self._verdict()]
        return Group(*parts)

    def _pair(self) -> Pair:
        return Pair(self.a.figures, self.b.figures, NAMES)

    def _verdict(self) -> Iterator[str]:
        if self.pipeline:
            yield "the pipelines differ: decisions are not compared"
        elif self.divergence is None:
            yield f"decisions equal: {self.a.decisions}"
        else:
            first = self.divergence
            yield f"decisions differ first at entry {first.index}"
            for name, at_ns, text in zip(NAMES, first.at_ns, first.texts, strict=True):
                where = "has ended" if text is None else f"at_ns {at_ns}: {_around(text, first)}"
                yield f"  {name}  {where}"
            yield from self._choices()

    def _choices(self) -> Iterator[str]:
        """Yield what differs beside the times."""
        first = self.choices
        if first is None:
            yield f"times aside the runs decided alike over all {self.jobs} jobs"
            return
        share = f"{first.differing} of {first.jobs} jobs"
        yield f"times aside they differ in {share}, first in {first.task} {first.index}"
        for name, side in zip(NAMES, first.sides, strict=True):
            yield f"  {name}  {'has no such job' if side is None else side.told()}"


def compare(a: str | Path, b: str | Path) -> Comparison:
    """Compare two run records.

    Raises:
        InputError: one of them is no run record.
    """
    runs = read_summary(a), read_summary(b)
    conditions = _differences(*(run.conditions for run in runs))
    conditions = {key: pair for key, pair in conditions.items() if not _of_one_clock(key, pair)}
    pipeline = _differences(*(dict(_leaves(encode(run.pipeline)[1])) for run in runs))
    if pipeline:
        return Comparison(*runs, conditions, pipeline, None)
    divergence = _first(a, b)
    choices, jobs = (None, 0) if divergence is None else first_difference(a, b)
    return Comparison(*runs, conditions, pipeline, divergence, choices, jobs)


def _first(a: str | Path, b: str | Path) -> Divergence | None:
    """Return the first journal entry that differs."""
    with RunFile(a) as run_a, RunFile(b) as run_b:
        for index, pair in enumerate(zip_longest(run_a.journal(), run_b.journal())):
            texts = _text(pair[0]), _text(pair[1])
            if texts[0] != texts[1]:
                at_ns = tuple(None if line is None else line.at_ns for line in pair)
                ends = zip_longest(texts[0] or "", texts[1] or "")
                place = next(i for i, chars in enumerate(ends) if chars[0] != chars[1])
                return Divergence(index, (at_ns[0], at_ns[1]), texts, place)
    return None


def _text(line: Line | None) -> str | None:
    return None if line is None else line.text


def _differences(a: Mapping[str, str], b: Mapping[str, str]) -> Values:
    keys = dict.fromkeys((*a, *b))
    return {key: (a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key)}


def _of_one_clock(key: str, pair: tuple[str | None, str | None]) -> bool:
    """Whether a condition is a right for real time that only one of the runs asked for."""
    return key.startswith("realtime.") and None in pair


def _leaves(data: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value of plain data with its path; members of lists go by their name."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list) and any(isinstance(item, dict) for item in data):
        for place, item in enumerate(data):
            name = item.get("name", place) if isinstance(item, dict) else place
            yield from _leaves(item, f"{path}.{name}")
    else:
        yield path, str(data)


def _around(text: str, divergence: Divergence) -> str:
    start = max(0, divergence.place - SHOWN_CHARS // 4)
    return f"... {text[start : start + SHOWN_CHARS]} ..."


def _value_table(title: str, values: Values) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in ("what", *NAMES):
        table.add_column(name, overflow="fold")
    for key, pair in values.items():
        table.add_row(Text(key), *(Text("-" if value is None else value) for value in pair))
    return table


def _pairs(values: Values) -> dict[str, object]:
    return {key: dict(zip(NAMES, pair, strict=True)) for key, pair in values.items()}


def _choices(difference: Difference) -> dict[str, object]:
    return {
        "task": difference.task,
        "index": difference.index,
        "differing": difference.differing,
        "jobs": difference.jobs,
        **{
            name: None if side is None else side.told()
            for name, side in zip(NAMES, difference.sides, strict=True)
        },
    }


def _divergence(divergence: Divergence) -> dict[str, object]:
    sides = {
        name: None if text is None else {"at_ns": at_ns, "entry": text}
        for name, at_ns, text in zip(NAMES, divergence.at_ns, divergence.texts, strict=True)
    }
    return {"index": divergence.index, **sides}
