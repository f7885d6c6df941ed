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


def check_below(limit: float, **values: float) -> None:
    """Raise SpecError for the first value that is not below the limit."""
    for name, value in values.items():
        if value >= limit:
            raise SpecError(f"expected less than {limit}, found {value}", (name,))


def check_choice(choices: tuple[str, ...], **values: str) -> None:
    """Raise SpecError for the first value that is none of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise SpecError(f"expected {' or '.join(choices)}, found {value!r}", (name,))


def check_whole(**bounds: tuple[object, int]) -> None:
    """Raise SpecError for the first (value, least) whose value is no whole number from least on."""
    for name, (value, least) in bounds.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise SpecError(
                f"expected a whole number of at least {least}, found {value!r}", (name,)
            )
