"""What a user writes: a class or a function from messages to a payload.

A stage is ordinary Python and can be called in a unit test. Its timing contract (period, wcet,
deadline) stands in the pipeline file, or in `@stage` when the pipeline is written in Python.
The parameters of `process` (or of the function) are the stage's inputs, by name.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from avrt.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.model.frames import Frames

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Stage:
    """Base of stages that keep state or need set-up; subclasses add `process`.

    `process` takes one `Message` per input, by keyword, in the order the pipeline file names them;
    an optional input may be None. It returns a payload, which avrt stamps and publishes. "Nothing
    seen" is a payload too: returning None is a fault. A payload is plain data, arrays and
    dataclasses; it belongs to its readers, so its arrays become read-only: return new ones.

    Attributes:
        output_frame: coordinate frame of what `process` returns; "" for that of its trigger.
        accepts: the acceptance test, a method that tells whether an output may be right, given the
            one accepted before (None at first); None where there is no test. It decides votes of a
            redundant stage; of any other, it fails the job.
    """

    output_frame: str = ""
    accepts: Callable[[object, object | None], bool] | None = None

    def calibrate(self, frames: Frames) -> None:
        """Take the rigid transforms between the sensors' frames; called once, before `warm`."""

    def place(self, device: str) -> None:
        """Compute on this device from now on, "cpu" or a GPU such as "cuda:0".

        Called on the stage's stream, before `warm` if it is a GPU, and whenever it changes: a GPU
        that is lost leaves its stages to the fallback. The state must not be on the lost device.
        """

    def warm(self) -> None:
        """Make buffers and run once; called before time starts, its cost is reported apart."""

    def weight_arrays(self) -> Sequence[object]:
        """Return the memory that it computes with and never changes: parameters, tables.

        Arrays of numpy or tensors of torch, in one order, themselves and no copies: they are
        checked and mended where they are. Asked for after `warm` and whenever `place` has moved it;
        wherever it computes they have the same types, shapes and values.
        """
        return ()

    def freeze(self) -> object:
        """Return the state as plain picklable data; a stateless stage returns None."""
        return None

    def thaw(self, state: object) -> None:
        """Take back a state that `freeze` returned."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The timing contract given with `@stage`; keys and quantities as in the pipeline file."""

    keys: dict[str, object] = field(default_factory=dict)


class FunctionStage(Generic[P, R_co]):
    """A plain function with a timing contract; calling it just calls the function."""

    def __init__(self, function: Callable[P, R_co], contract: Contract) -> None:
        self.function = function
        self.contract = contract
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self.function(*args, **kwargs)


def stage(**keys: object) -> Callable[[Callable[P, R_co]], FunctionStage[P, R_co]]:
    """Give a function its timing contract, with the keys of a stage in the pipeline file.

    `@stage(wcet="5 ms", deadline="33 ms")`.
    """

    def wrap(function: Callable[P, R_co]) -> FunctionStage[P, R_co]:
        return FunctionStage(function, Contract(keys))

    return wrap


def process_inputs(target: object) -> tuple[str, ...]:
    """Return the names of the inputs of a stage class, instance or function.

    Raises:
        SpecError: if it has no `process`, or takes something that is not a named input.
    """
    function = target.function if isinstance(target, FunctionStage) else target
    if inspect.isclass(function) or isinstance(function, Stage):
        process = getattr(function, "process", None)
        if process is None:
            name = getattr(function, "__name__", type(function).__name__)
            raise SpecError(f"{name} has no process(); write one whose parameters are its inputs")
        function = process
    if not callable(function):
        raise SpecError(f"expected a stage class or a function, found {function!r}")
    names = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    for parameter in names:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise SpecError(f"inputs are named parameters, found {parameter}; name each of them")
    return tuple(parameter.name for parameter in names)
