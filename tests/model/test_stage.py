"""A stage is ordinary Python: it can be called, and its inputs are its parameters."""

from __future__ import annotations

import pytest

from avrt.errors import SpecError
from avrt.model.stage import FunctionStage, Stage, process_inputs, stage


@stage(wcet="5 ms", deadline="33 ms")
def double(image):
    """Double it."""
    return image * 2


class Counter(Stage):
    def process(self, image, mask=None):
        return image, mask


def test_a_decorated_function_can_be_called_and_keeps_its_name():
    assert double(3) == 6
    assert isinstance(double, FunctionStage)
    assert double.__name__ == "double"
    assert double.__doc__ == "Double it."
    assert double.contract.keys == {"wcet": "5 ms", "deadline": "33 ms"}


def test_a_stage_without_state_freezes_to_nothing():
    counter = Counter()
    counter.warm()
    counter.thaw(None)
    assert counter.freeze() is None


@pytest.mark.parametrize("target", [Counter, Counter()])
def test_the_inputs_of_a_class_are_the_parameters_of_process(target):
    assert process_inputs(target) == ("image", "mask")


def test_the_inputs_of_a_function_are_its_parameters():
    assert process_inputs(double) == ("image",)
    assert process_inputs(lambda a, b: a + b) == ("a", "b")


@pytest.mark.parametrize("target", [Stage, Stage()])
def test_a_stage_without_process_is_refused(target):
    with pytest.raises(SpecError, match=r"^Stage has no process\(\)"):
        process_inputs(target)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(SpecError, match="expected a stage class or a function, found 3"):
        process_inputs(3)


@pytest.mark.parametrize("target", [lambda *a: a, lambda **k: k], ids=["list", "any"])
def test_inputs_are_named(target):
    with pytest.raises(SpecError, match="inputs are named parameters"):
        process_inputs(target)
