"""Profile files: what `avrt profile -o` measured, by stage.

A file of that command, as it wrote it: of each stage it uses the times of all jobs but the first,
and how far the outputs of its copies lay apart. What was measured on another device than the one a
stage runs on is refused, and so is a tolerance of copies that ran something else, or of few frames.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import yaml

from avrt.config.reader import text
from avrt.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from avrt.config.node import Node

FRAMES_MIN = 1000
"""Of a tolerance that is believed."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_times(node: Node, stage: str, device: str | None, folder: Path) -> tuple[int, ...]:
    """Return the times of a stage in the profile that a node names, ascending, ns.

    `device` is where they must have been measured; None does not ask.
    """
    path, found = _stage(node, stage, folder)
    times = found.get("times_ns")
    if not isinstance(times, list) or not all(type(ns) is int and ns > 0 for ns in times):
        raise node.fail(f"{path}: expected times_ns of {stage}, a list of whole ns above zero")
    if not times:
        raise node.fail(f"{path}: no job of {stage} was measured after the first; profile a log")
    _check_device(node, path, stage, found, device)
    return tuple(sorted(times))


def read_allowance(
    node: Node, stage: str, device: str, runs: Sequence[str], key: Literal["tolerance", "within"]
) -> float:
    """Return by how much outputs of a stage's copies may differ, of the profile that a node names.

    `runs` is what each copy runs, empty where all run the stage's own.
    """
    path, found = _stage(node, stage, node.folder)
    copies = found.get("copies")
    if not isinstance(copies, dict):
        raise node.fail(f"{path}: copies of {stage} were not measured; profile a log with them")
    if copies.get("runs") != list(runs):
        raise node.fail(f"{path}: other copies of {stage} were measured; profile these")
    _check_device(node, path, stage, found, device)
    frames, unlike, value = (copies.get(name) for name in ("frames", "unlike", key))
    if type(frames) is not int or frames < FRAMES_MIN:
        what = f"{stage} was measured in {frames} frames, and {FRAMES_MIN} are asked for"
        raise node.fail(f"{path}: {what}; profile a longer log")
    if unlike != 0:
        what = f"in {unlike} of {frames} frames copies of {stage} differ by more than numbers"
        raise node.fail(f"{path}: {what}; no {key} makes them agree")
    if type(value) is not float:
        raise node.fail(f"{path}: {key} is not what outputs of {stage} are compared by; remove it")
    if not 0 <= value < (1 if key == "tolerance" else math.inf):
        what = f"a {key} of {value:g} would let any outputs of {stage} agree"
        raise node.fail(f"{path}: {what}; its copies differ too much")
    return value


def _stage(node: Node, stage: str, folder: Path) -> tuple[Path, dict[str, object]]:
    """Return the profile that a node names, and what it has of a stage."""
    path = folder / text(node)
    stages = _stages(node, path)
    if stage not in stages:
        raise node.fail(f"{path} has no stage {stage!r}; {did_you_mean(stage, stages)}")
    found = stages[stage]
    return path, found if isinstance(found, dict) else {}


def _check_device(
    node: Node, path: Path, stage: str, found: Mapping[str, object], device: str | None
) -> None:
    if device is not None and found.get("device") != device:
        where = f"measured on {found.get('device')!r}, and the stage runs on {device!r}"
        raise node.fail(f"{path}: {stage} was {where}; profile it there")


def _stages(node: Node, path: Path) -> dict[str, dict[str, object]]:
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), LOADER)  # noqa: S506 - a safe loader
    except OSError as error:
        raise node.fail(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError):
        raise node.fail(f"{path} is no profile; make one with avrt profile -o") from None
    stages = found.get("stages") if isinstance(found, dict) else None
    if not isinstance(stages, dict):
        raise node.fail(f"{path} is no profile; make one with avrt profile -o")
    return stages
