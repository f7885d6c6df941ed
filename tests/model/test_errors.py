"""One line an error, and the exit code of each class as the command line documents it."""

from __future__ import annotations

import pytest

from avrt import errors
from avrt.errors import (
    DataFault,
    HardwareFault,
    InputError,
    KernelError,
    SoftwareFault,
    SpecError,
    did_you_mean,
)


@pytest.mark.parametrize(
    ("error", "text", "exit_code"),
    [
        (SpecError("is odd"), "is odd", 2),
        (SpecError("is odd", ("a", "b")), "a.b: is odd", 2),
        (SpecError("is odd", ("a",)).at("p.yaml:3"), "p.yaml:3: a: is odd", 2),
        (InputError("cut off", "x.mcap"), "x.mcap: cut off", 4),
        (
            InputError("cut off", "x.mcap", 3),
            "x.mcap: cut off (3 messages before it are good)",
            4,
        ),
        (HardwareFault("lost", "gpu"), "lost: gpu", 1),
        (SoftwareFault("raised", "x"), "raised: x", 1),
        (DataFault("nan", "x"), "nan: x", 1),
        (
            KernelError("time went back"),
            "time went back (a bug in avrt: please report it with the run record)",
            70,
        ),
    ],
)
def test_an_error_tells_itself_in_one_line(error, text, exit_code):
    assert str(error) == text
    assert error.exit_code == exit_code
    assert isinstance(error, errors.AvrtError)


def test_a_damaged_log_delivered_its_good_part():
    error = errors.DamagedInputError("cut off", "x.mcap", 3)
    assert str(error) == "x.mcap: cut off (3 good messages were delivered)"
    assert error.exit_code == 3


def test_the_remedy_for_an_unknown_name():
    assert did_you_mean("lider", ["camera", "lidar"]) == "did you mean 'lidar'?"
    assert did_you_mean("zzz", ["camera", "lidar"]) == "known are camera, lidar"
    assert did_you_mean("zzz", []) == "none is defined"
