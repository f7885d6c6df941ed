"""A profile: what every stage of a pipeline takes on real input on this host.

Warm-up and the first job are apart from the distribution; the high-water mark is the longest of all
jobs, the first included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from avrt.units import NS_PER_MS, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from avrt.metrics.distribution import Distribution
    from avrt.metrics.extremes import WorstCase

PERCENTILES = ("p50", "p95", "p99", "max")
COLUMNS = ("min", *PERCENTILES, "high-water mark", "wcet", "warm-up", "first job")


@dataclass(frozen=True, slots=True)
class CopiesProfile:
    """How far outputs of the copies of one stage lay apart, all of them healthy.

    Attributes:
        runs: what each ran; empty where all ran the stage's `run`.
        frames: in which all gave an output; `unlike` those in which more than numbers differed.
        largest: the largest distance of two outputs of one frame.
        tolerance, within: what these keys are to say after that; None where the stage is not voted
            on by them.
    """

    runs: tuple[str, ...]
    frames: int
    unlike: int
    largest: float
    tolerance: float | None
    within: float | None

    def data(self) -> dict[str, object]:
        return {
            "runs": list(self.runs),
            "frames": self.frames,
            "unlike": self.unlike,
            "largest": self.largest,
            "tolerance": self.tolerance,
            "within": self.within,
        }

    @property
    def told(self) -> str:
        """All of it in words."""
        keys = (("tolerance", self.tolerance), ("within", self.within))
        means = next((f"{key} {value:.3g}" for key, value in keys if value is not None), "")
        far = f"at most {self.largest:.3g}{'' if means else ' of what is allowed'} apart"
        unlike = f", {self.unlike} differ by more than numbers" if self.unlike else ""
        calibrated = f"; calibrated {means}" if means else ""
        return f"outputs of its copies lie {far} in {self.frames} frames{unlike}{calibrated}"


@dataclass(frozen=True, slots=True)
class StageProfile:
    """Execution times of one stage, ns of host time.

    Attributes:
        wcet_ns: what the pipeline declares.
        warm_ns, first_ns: the warm-up and the first job; None when the stage never ran.
        times: of all jobs but the first, in order.
        by_shape: the same by the size of the input.
        faulty: what went wrong first in a job, None if nothing did.
        copies: how far outputs of its copies lay apart; None of a stage without any.
    """

    device: str
    wcet_ns: int
    warm_ns: int | None
    first_ns: int | None
    times: Distribution
    by_shape: Mapping[str, Distribution]
    worst: WorstCase
    faulty: str | None
    copies: CopiesProfile | None

    @property
    def high_water_ns(self) -> int | None:
        """The longest of all jobs."""
        return max((*self.times.values, *([self.first_ns] if self.first_ns else [])), default=None)

    def data(self) -> dict[str, object]:
        figures = self.times.summary()
        return {
            "device": self.device,
            "wcet_ns": self.wcet_ns,
            "warm_ns": self.warm_ns,
            "first_job_ns": self.first_ns,
            "count": figures["count"],
            "min_ns": min(self.times.values, default=None),
            **{f"{name}_ns": figures[name] for name in PERCENTILES},
            "high_water_ns": self.high_water_ns,
            "shapes": {
                shape: {
                    ("count" if key == "count" else f"{key}_ns"): value
                    for key, value in times.summary().items()
                }
                for shape, times in sorted(self.by_shape.items())
            },
            "probabilistic_wcet": _worst(self.worst),
            "first_fault": self.faulty,
            "copies": None if self.copies is None else self.copies.data(),
            "times_ns": list(self.times.values),
        }


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a pipeline; `damage` is what was wrong with the log."""

    pipeline: str
    stages: Mapping[str, StageProfile]
    conditions: Mapping[str, str]
    damage: list[str]

    def data(self) -> dict[str, object]:
        """Return the profile object: plain data, times in ns."""
        return {
            "pipeline": self.pipeline,
            "stages": {name: stage.data() for name, stage in self.stages.items()},
            "conditions": dict(self.conditions),
            "damage": self.damage,
        }

    def render(self) -> RenderableType:
        """Return everything for a terminal."""
        title = f"{self.pipeline}: execution times, measured here (ms)"
        table = Table(title=title, title_justify="left", header_style="bold")
        table.add_column("stage")
        table.add_column("device")
        for name in ("jobs", *COLUMNS):
            table.add_column(name, justify="right")
        for name, stage in self.stages.items():
            table.add_row(Text(name), Text(stage.device), str(len(stage.times)), *_row(stage))
        return Group(table, *self._shapes(), *self._notes())

    def _shapes(self) -> Iterator[Table]:
        """Yield the times by size of input, if any stage had inputs of several sizes."""
        if all(len(stage.by_shape) <= 1 for stage in self.stages.values()):
            return
        table = Table(title="by size of input (ms)", title_justify="left", header_style="bold")
        table.add_column("stage")
        table.add_column("input")
        for name in ("jobs", *PERCENTILES):
            table.add_column(name, justify="right")
        for name, stage in self.stages.items():
            for shape, times in sorted(stage.by_shape.items()):
                figures = times.summary()
                row = (_ms(figures[key]) for key in PERCENTILES)
                table.add_row(Text(name), Text(shape), str(len(times)), *row)
        yield table

    def _notes(self) -> Iterator[Text]:
        for name, stage in self.stages.items():
            yield Text(f"{name}: {_worst_in_words(stage.worst)}")
            high_ns = stage.high_water_ns
            if high_ns is not None and high_ns > stage.wcet_ns:
                what = f"the high-water mark {format_ns(high_ns)} is above its wcet"
                yield Text(f"{name}: {what} {format_ns(stage.wcet_ns)}", style="red")
            if stage.copies is not None:
                wrong = stage.copies.unlike or not stage.copies.frames
                yield Text(f"{name}: {stage.copies.told}", style="red" if wrong else "")
            if stage.faulty is not None:
                yield Text(f"{name}: times of failed jobs are among them: {stage.faulty}", "red")
        for problem in self.damage:
            yield Text(f"damaged: {problem}", style="red")


def _row(stage: StageProfile) -> list[str]:
    data = stage.data()
    keys = ("min", "p50", "p95", "p99", "max", "high_water", "wcet", "warm", "first_job")
    return [_ms(data[f"{key}_ns"]) for key in keys]


def _ms(value: object) -> str:
    return f"{value / NS_PER_MS:.2f}" if isinstance(value, int) else "-"


def _worst_in_words(worst: WorstCase) -> str:
    if worst.refused:
        return f"no probabilistic wcet: {worst.refused}"
    parts = [f"{format_ns(ns)} at {p:g}" for p, ns in worst.estimates_ns.items()]
    return f"probabilistic wcet (estimate, exceeded by a job with probability): {', '.join(parts)}"


def _worst(worst: WorstCase) -> dict[str, object]:
    tail = worst.tail
    return {
        "refused": worst.refused or None,
        "p_values": dict(worst.p_values),
        "tail": None
        if tail is None
        else {
            "threshold_ns": round(tail.threshold_ns),
            "share": tail.share,
            "scale_ns": round(tail.scale_ns),
            "shape": tail.shape,
        },
        "estimates": [{"probability": p, "ns": ns} for p, ns in worst.estimates_ns.items()],
    }
