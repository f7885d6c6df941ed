"""Profile files: execution times that `avrt profile -o` measured, by stage.

A file of that command, as it wrote it: of each stage it uses the times of all jobs but the first.
Times measured on another device than the one a stage runs on are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from avrt.config.reader import text
from avrt.errors import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from avrt.config.node import Node

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_times(node: Node, stage: str, device: str | None, folder: Path) -> tuple[int, ...]:
    """Return the times of a stage in the profile that a node names, ascending, ns.

    `device` is where they must have been measured; None does not ask.
    """
    path = folder / text(node)
    stages = _stages(node, path)
    if stage not in stages:
        raise node.fail(f"{path} has no stage {stage!r}; {did_you_mean(stage, stages)}")
    found = stages[stage]
    times = found.get("times_ns") if isinstance(found, dict) else None
    if not isinstance(times, list) or not all(type(ns) is int and ns > 0 for ns in times):
        raise node.fail(f"{path}: expected times_ns of {stage}, a list of whole ns above zero")
    if not times:
        raise node.fail(f"{path}: no job of {stage} was measured after the first; profile a log")
    if device is not None and found.get("device") != device:
        where = f"measured on {found.get('device')!r}, and the stage runs on {device!r}"
        raise node.fail(f"{path}: {stage} was {where}; profile it there")
    return tuple(sorted(times))


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
