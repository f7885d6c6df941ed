"""Which reference cases there are, which of them are run here, and which are left and why.

`exact(...)` marks a test that demands the published values themselves; `bounded(...)` one in which
the published value is a bound, or a verdict that one schedule can only fail to contradict.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml

SHARED = Path(__file__).parents[3] / "shared"
FOLDER = SHARED / "cases" / "sched"
COUNT = 136
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

RUN: dict[str, set[str]] = {}
"""Case id to the kinds of tests that run it; filled as the test modules are imported."""

NOT_RUN: dict[str, str] = {}
"""Case id to why nothing runs it."""

FIELDS_LEFT: dict[str, str] = {
    "edf-pdc-buttazzo": "L_star: windows up to the busy period are looked at instead",
    "can-davis2007-abc": "schedulable_flawed: what an unsafe analysis says",
}
"""Parts of cases that are run here which nothing here shows."""


@cache
def all_cases():
    """Return every reference case by id."""
    cases = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        for case in yaml.load(text, LOADER)["cases"]:  # noqa: S506 - a safe loader
            cases[case["id"]] = case
    return cases


def load(case_id):
    """Return one case; the test is skipped where the shared folder is absent."""
    if not FOLDER.is_dir():
        pytest.skip(f"the reference cases are not here: {FOLDER}")
    return all_cases()[case_id]


def exact(*ids):
    """Run a test over these cases; their values must come out exactly."""
    return _each("exact", ids)


def bounded(*ids):
    """Run a test over these cases; their values must not be exceeded."""
    return _each("bounded", ids)


def _each(kind, ids):
    for case_id in ids:
        RUN.setdefault(case_id, set()).add(kind)
    return pytest.mark.parametrize("case", ids, indirect=True)
