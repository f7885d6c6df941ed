"""The conventions that a linter does not know, checked on the syntax trees of the package.

`RATCHET` holds what was there when a rule came: its numbers may only fall.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "avrt").rglob("*.py"))
SHIPPED = [*MODULES, *sorted((ROOT / "tools").rglob("*.py"))]

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
BANNED_MODULES = {"utils", "util", "helpers", "common", "manager", "misc"}
CATCH_ALL = "avrt/errors.py"
PRINTING = ("avrt/cli", "avrt/report", "tools")
NO_NUMBERS = {"ros_time"}  # names that end like a unit but hold a ROS Time message
UNIT_LAST = re.compile(r".*_(ms|sec|secs|time)")
TODO = re.compile(r"#.*\b(TODO|FIXME|XXX)\b(?!.*#\d+)")

RATCHET: dict[str, int] = {}
"""Path of a file, to how many of its functions are still longer than allowed."""


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"), name_of(path))


def nodes(path, *kinds):
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, kinds)]


each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)
each_file = pytest.mark.parametrize("path", SHIPPED, ids=name_of)


@each_module
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE_LINES_MAX


@each_module
def test_functions_are_short(path):
    functions = nodes(path, ast.FunctionDef, ast.AsyncFunctionDef)
    long = [f.name for f in functions if f.end_lineno - f.lineno + 1 > FUNCTION_LINES_MAX]
    assert len(long) <= RATCHET.get(name_of(path), 0), long


@each_file
def test_modules_say_their_one_idea(path):
    text = ast.get_docstring(tree_of(path))
    assert text
    assert len(text.splitlines()[0]) <= 100


@each_module
def test_modules_are_named_for_what_they_hold(path):
    assert not BANNED_MODULES & {path.stem, path.parent.name}


@each_module
def test_only_the_command_line_and_the_report_print(path):
    if name_of(path).startswith(PRINTING):
        return
    calls = [n for n in nodes(path, ast.Call) if isinstance(n.func, ast.Name)]
    assert not [f"line {call.lineno}" for call in calls if call.func.id == "print"]


@each_module
def test_times_are_named_in_ns(path):
    if name_of(path).startswith("avrt/report"):
        return
    bound = [n.id for n in nodes(path, ast.Name) if isinstance(n.ctx, ast.Store)]
    bound += [n.attr for n in nodes(path, ast.Attribute) if isinstance(n.ctx, ast.Store)]
    bound += [n.arg for n in nodes(path, ast.arg)]
    bound += [n.name for n in nodes(path, ast.FunctionDef)]
    assert not [name for name in bound if UNIT_LAST.fullmatch(name) and name not in NO_NUMBERS]


@each_file
def test_what_is_left_to_do_names_its_issue(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [f"line {n}" for n, line in enumerate(lines, 1) if TODO.search(line)]


def test_whatever_may_be_raised_is_caught_in_one_place():
    found = [name_of(path) for path in MODULES for _ in range(catch_alls(path))]
    assert found in ([], [CATCH_ALL])


def catch_alls(path):
    """Count handlers of everything that do not raise it again."""
    count = 0
    for handler in nodes(path, ast.ExceptHandler):
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        broad = any(
            k is None or getattr(k, "id", "") in {"Exception", "BaseException"} for k in kinds
        )
        raised = any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(handler))
        count += broad and not raised
    return count


def test_the_ratchet_only_names_files_that_exist():
    assert not [name for name in RATCHET if not (ROOT / name).is_file()]
