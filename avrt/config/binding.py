"""From `run:` to a stage that can be called: find it, check it against its keys, make it.

`run` is `package.module:Name`, or `file.py:Name` for a file beside the pipeline file; such a file
is loaded by its path, and the module search path stays as it is. What is found is a class derived
from `avrt.Stage`, whose constructor takes `params`, or a function. Its inputs are the parameters
of `process` (or of the function). Errors name the key; `LoadedPipeline.placed` adds the line.

Only what goes wrong while importing or constructing is caught; it becomes a SpecError that shows
the user's own message and line.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from contextlib import ExitStack, contextmanager
from hashlib import blake2s
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from avrt.errors import SpecError, did_you_mean
from avrt.model.source import Source
from avrt.model.stage import FunctionStage, Stage, process_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from avrt.model.frames import Frames
    from avrt.model.spec import SourceSpec, StageSpec

_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
SCALARS: Mapping[str, tuple[type, ...]] = {
    "float": (int, float),
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
}
_MESSAGE_CHARS_MAX = 200


class _Process(Protocol):
    def __call__(self, **inputs: object) -> object: ...


class BoundStage(Protocol):
    """A stage ready to run; `process` takes its inputs by keyword and returns a payload."""

    output_frame: str
    accepts: Callable[[object, object | None], bool] | None

    def calibrate(self, frames: Frames) -> None: ...
    def place(self, device: str) -> None: ...
    def warm(self) -> None: ...
    def process(self, **inputs: object) -> object: ...
    def weight_arrays(self) -> Sequence[object]: ...
    def freeze(self) -> object: ...
    def thaw(self, state: object) -> None: ...


def build(stage: StageSpec, folder: Path | None = None) -> BoundStage:
    """Return the stage that `run` names, made with its `params`.

    Args:
        stage: the stage as declared.
        folder: folder of the pipeline file, where `file.py:Name` is looked for; by default the
            current one.

    Raises:
        SpecError: it cannot be found or made, or does not fit its `inputs` and `params`.
    """
    return build_target(stage, _resolve_stage(stage, folder))


def check_binding(stage: StageSpec, folder: Path | None = None) -> None:
    """Raise SpecError unless `run` names a stage that fits its `inputs` and `params`."""
    check_target(stage, _resolve_stage(stage, folder))


def returned(stage: StageSpec, folder: Path | None = None) -> str:
    """Return what the stage that `run` names says it returns, as written; "" if it does not."""
    found = _resolve_stage(stage, folder)
    function = found.function if isinstance(found, FunctionStage) else found
    process = getattr(function, "process", function)
    assert callable(process)
    told: object = inspect.signature(process).return_annotation
    if told is inspect.Signature.empty:
        return ""
    return told if isinstance(told, str) else getattr(told, "__name__", str(told))


def build_target(stage: StageSpec, target: object) -> BoundStage:
    """Return the stage that a class or function makes, as `build` does."""
    check_target(stage, target)
    function = target.function if isinstance(target, FunctionStage) else target
    if not isinstance(function, type):
        return _Plain(cast("_Process", function))
    make: type = function
    try:
        made: BoundStage = make(**stage.params)
    except SpecError as error:
        raise SpecError(error.what, ("stages", stage.name, "params", *error.key)) from error
    except _FAILURES as error:
        what = f"{function.__name__} cannot be made with these parameters: {_told(error)}"
        raise SpecError(what, ("stages", stage.name, "params")) from error
    return made


def build_source(source: SourceSpec, folder: Path | None = None) -> Source:
    """Return the live source that `run` names, made with its `params`.

    Raises:
        SpecError: it cannot be found or made.
    """
    key = ("sources", source.name)
    try:
        found = resolve(source.run, folder)
    except SpecError as error:
        raise SpecError(error.what, (*key, "run")) from error.__cause__
    title = getattr(found, "__name__", repr(found))
    if not (isinstance(found, type) and issubclass(found, Source)):
        what = f"{title} is no live source; derive it: class {title}(avrt.Source)"
        raise SpecError(what, (*key, "run"))
    try:
        made: Source = found(**source.params)
    except _FAILURES as error:
        what = f"{title} cannot be made with these parameters: {_told(error)}"
        raise SpecError(what, (*key, "params")) from error
    return made


class _Plain(Stage):
    """A function as a stage without state."""

    def __init__(self, function: _Process) -> None:
        self.process = function


def check_target(stage: StageSpec, target: object) -> None:
    """Raise SpecError unless this class or function fits the stage's `inputs` and `params`."""
    function = target.function if isinstance(target, FunctionStage) else target
    title = getattr(function, "__name__", repr(function))
    key = ("stages", stage.name)
    if isinstance(function, Stage):
        raise SpecError("expected a stage class, found an instance of it", (*key, "run"))
    if isinstance(function, type) and not issubclass(function, Stage):
        what = f"{title} is no stage; derive it: class {title}(avrt.Stage)"
        raise SpecError(what, (*key, "run"))
    try:
        process_inputs(function)
    except SpecError as error:
        raise SpecError(error.what, (*key, "run")) from None
    _check_params(stage, function, title)
    process = getattr(function, "process", function)
    parameters = _parameters(process)
    _check_names(stage, "inputs", [i.name for i in stage.inputs], parameters, title)


def resolve(run: str, folder: Path | None = None) -> object:
    """Return the class or function that `run` names.

    Raises:
        SpecError: there is no such module, file or name, or importing it fails.
    """
    place, _, name = run.rpartition(":")
    folder = folder or Path()
    module = _load_file(folder / place) if place.endswith(".py") else _load_module(place, folder)
    if not hasattr(module, name):
        own = [n for n, value in vars(module).items() if _is_own(module, value)]
        known = getattr(module, "__all__", own)
        raise SpecError(f"{place} has no {name!r}; {did_you_mean(name, known)}")
    found: object = getattr(module, name)
    return found


def _resolve_stage(stage: StageSpec, folder: Path | None) -> object:
    key: tuple[str, ...] = ("stages", stage.name)
    if not stage.run:
        what = "'run' is missing; add it, such as \"run: my_stage.py:Name\""
        raise SpecError(what, key)
    try:
        return resolve(stage.run, folder)
    except SpecError as error:
        raise SpecError(error.what, (*key, "run")) from error.__cause__


def _check_params(stage: StageSpec, function: object, title: str) -> None:
    if isinstance(function, type):
        parameters = _parameters(function)
        _check_names(stage, "params", stage.params, parameters, title)
        for name, value in stage.params.items():
            _check_scalar(stage, name, value, parameters.get(name))
    elif stage.params:
        what = f"{title} is a function and takes no parameters; write a class derived from Stage"
        raise SpecError(what, ("stages", stage.name, "params"))


def _check_scalar(
    stage: StageSpec, name: str, value: object, parameter: inspect.Parameter | None
) -> None:
    """Refuse a value that is plainly not what a parameter annotated as a scalar takes."""
    annotation = None if parameter is None else parameter.annotation
    label = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    kinds = SCALARS.get(label)
    if kinds is None or (isinstance(value, kinds) and (bool in kinds) == isinstance(value, bool)):
        return
    expected = {"float": "a number", "int": "a whole number", "str": "text"}.get(label, "a boolean")
    raise SpecError(f"expected {expected}, found {value!r}", ("stages", stage.name, "params", name))


def _check_names(
    stage: StageSpec,
    group: str,
    given: Iterable[str],
    parameters: dict[str, inspect.Parameter],
    title: str,
) -> None:
    what = {"inputs": "input", "params": "parameter"}[group]
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = [n for n, p in parameters.items() if p.kind not in {p.VAR_KEYWORD, p.VAR_POSITIONAL}]
    names = list(given)
    key = ("stages", stage.name, group)
    for name in names:
        if name not in known and not any_name:
            text = f"{title} has no {what} {name!r}; {did_you_mean(name, known)}"
            raise SpecError(text, (*key, name))
    for name in known:
        if name not in names and parameters[name].default is inspect.Parameter.empty:
            raise SpecError(f"{title} needs the {what} {name!r}; add it to {group!r}", key)


def _parameters(function: object) -> dict[str, inspect.Parameter]:
    assert callable(function)
    found = inspect.signature(function).parameters
    return {name: parameter for name, parameter in found.items() if name != "self"}


def _load_module(name: str, folder: Path) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise SpecError(f"importing {name} failed: {_told(error)}") from error
        raise SpecError(_no_module(error.name, folder)) from None
    except _FAILURES as error:
        raise SpecError(f"importing {name} failed: {_told(error)}") from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        names = sorted(p.name for p in path.parent.glob("*.py"))
        raise SpecError(f"no file {str(path)!r}; {did_you_mean(path.name, names)}")
    digest = blake2s(str(path.resolve()).encode(), digest_size=4).hexdigest()
    name = f"avrt_file_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with ExitStack() as undo, _neighbours(path.parent):
        sys.modules[name] = module  # dataclasses and pickle look their module up there
        undo.callback(sys.modules.pop, name)
        try:
            spec.loader.exec_module(module)
        except _FAILURES as error:
            raise SpecError(f"importing {path} failed: {_told(error)}") from error
        undo.pop_all()
    return module


@contextmanager
def _neighbours(folder: Path) -> Iterator[None]:
    """Let a file import its neighbours, as it could if it were run as a script."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


def _no_module(name: str, folder: Path) -> str:
    parent, _, leaf = name.rpartition(".")
    if not parent and (folder / f"{leaf}.py").is_file():
        return f"no module named {name!r}; for the file beside the pipeline write '{leaf}.py:Name'"
    paths = getattr(sys.modules[parent], "__path__", []) if parent else None
    near = did_you_mean(leaf, [module.name for module in pkgutil.iter_modules(paths)])
    if parent or near.startswith("did"):
        return f"no module named {name!r}; {near}"
    return f"no module named {name!r}; install it, or write 'file.py:Name' for a file of your own"


def _is_own(module: ModuleType, value: object) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename != __file__ and "importlib" not in f.filename]
    place = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    message = " ".join(str(error).split())[:_MESSAGE_CHARS_MAX]
    return f"{type(error).__name__}: {message}{place}"
