"""What a user imports from `avrt`: sorted, importable, documented, and nothing else by accident."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import avrt

NAMES = getattr(avrt, "__all__", [])


def test_the_public_names_are_sorted_and_unique():
    assert list(NAMES) == sorted(set(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_can_be_imported_and_is_documented(name):
    value = getattr(avrt, name)
    if inspect.isclass(value) or callable(value):
        assert inspect.getdoc(value)


def test_the_package_says_what_it_is():
    assert avrt.__doc__.startswith("avrt: a real-time automotive perception runtime")


@pytest.mark.slow
def test_reading_a_pipeline_does_not_import_torch():
    code = (
        "import sys, avrt.config.pipeline, avrt.config.binding; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own code
