"""Check the numbers a user gives a stage in `params:`; a wrong one is the user's to mend."""

from __future__ import annotations

import math

from avrt.errors import SpecError


def check_number(**values: object) -> None:
    """Raise SpecError for the first value that is no finite number."""
    for name, value in values.items():
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not math.isfinite(value)
        ):
            raise SpecError(f"expected a number, found {value!r}", (name,))


def check_positive(**values: float) -> None:
    """Raise SpecError for the first value that is no finite number above zero."""
    check_number(**values)
    for name, value in values.items():
        if value <= 0:
            raise SpecError(f"expected a number above zero, found {value}", (name,))


def check_not_negative(**values: float) -> None:
    """Raise SpecError for the first value that is no finite number of at least zero."""
    check_number(**values)
    for name, value in values.items():
        if value < 0:
            raise SpecError(f"expected a number of at least zero, found {value}", (name,))


def check_probability(**values: float) -> None:
    """Raise SpecError for the first value that is no probability strictly between 0 and 1."""
    check_number(**values)
    for name, value in values.items():
        if not 0 < value < 1:
            raise SpecError(f"expected a probability between 0 and 1, found {value}", (name,))
