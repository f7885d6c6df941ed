"""No reference case is forgotten: each is run here or left with a reason, and none is both."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import cases
from cases.reference import COUNT, FIELDS_LEFT, FOLDER, NOT_RUN, RUN, all_cases


@pytest.fixture(autouse=True, scope="module")
def _all_modules():
    for module in pkgutil.iter_modules(cases.__path__):
        if module.name.startswith("test_"):
            import_module(f"cases.{module.name}")


def test_every_case_is_run_or_left():
    if not FOLDER.is_dir():
        pytest.skip(f"the reference cases are not here: {FOLDER}")
    assert len(all_cases()) == COUNT
    assert set(all_cases()) - set(RUN) == set(NOT_RUN)


def test_no_case_is_both_run_and_left():
    assert not set(RUN) & set(NOT_RUN)
    assert len(RUN) + len(NOT_RUN) == COUNT


def test_fields_are_left_of_cases_that_are_run():
    assert not set(FIELDS_LEFT) - set(RUN)
