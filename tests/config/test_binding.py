"""From `run:` to a stage: found, checked against its keys, and made; every failure has a remedy."""

from __future__ import annotations

import sys

import pytest

from avrt.config.binding import build, build_target, check_binding, check_target, resolve
from avrt.errors import SpecError
from avrt.model.spec import InputSpec, StageSpec
from avrt.model.stage import FunctionStage, Stage, stage

MINE = """\
from __future__ import annotations

from dataclasses import dataclass

from avrt.errors import SpecError
from avrt.model.stage import Stage


class Detector(Stage):
    def __init__(self, model: str, tiles: int = 1, **extra: object) -> None:
        if tiles < 1:
            raise ValueError(f"tiles must be\\nat least 1, found {tiles}")
        if extra:
            raise SpecError("is not used", ("extra",))
        self.model = model

    def process(self, image, mask=None):
        return (self.model, image, mask)


class Strict(Stage):
    def __init__(self, *args: int, tiles: int) -> None: ...

    def process(self, image): ...


class Empty(Stage): ...


class NoStage:
    def process(self, image): ...


class Greedy(Stage):
    def process(self, *images): ...


@dataclass
class Thing:
    x: int


def blur(image):
    return image


detector = Detector("m")
NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "syntax.py").write_text("def broken(:\n")
    (tmp_path / "raises.py").write_text("x = 1\ny = undefined\n")
    (tmp_path / "imports.py").write_text("import no_such_package_anywhere\n")
    return tmp_path


def spec(run="", inputs=("image",), **params):
    return StageSpec(
        name="a",
        device="cpu",
        wcet_ns=1,
        deadline_ns=1,
        run=run,
        inputs=tuple(InputSpec(name=name, source="cam") for name in inputs),
        params=params,
    )


def told(function, *args):
    with pytest.raises(SpecError) as caught:
        function(*args)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_class_in_a_file_beside_the_pipeline_is_made_with_its_params(folder):
    made = build(spec("mine.py:Detector", model="m"), folder)
    assert isinstance(made, Stage)
    assert made.process(image=1) == ("m", 1, None)


def test_the_module_search_path_stays_as_it_is(folder):
    before = list(sys.path)
    resolve("mine.py:Detector", folder)
    assert sys.path == before


def test_a_file_is_loaded_once(folder):
    assert resolve("mine.py:Detector", folder) is resolve("mine.py:Detector", folder)


def test_a_file_that_fails_leaves_nothing_behind(folder):
    before = set(sys.modules)
    told(resolve, "raises.py:x", folder)
    assert set(sys.modules) == before


def test_a_function_becomes_a_stage(folder):
    made = build(spec("mine.py:blur"), folder)
    assert made.process(image=7) == 7
    assert made.freeze() is None


def test_a_decorated_function_becomes_a_stage():
    @stage(wcet="5 ms", deadline="33 ms")
    def double(image):
        return image * 2

    assert isinstance(double, FunctionStage)
    assert build_target(spec(), double).process(image=2) == 4


def test_a_module_in_a_package_is_found():
    assert resolve("avrt.model.stage:Stage") is Stage


def test_an_optional_parameter_may_be_left_out_or_given(folder):
    check_binding(spec("mine.py:Detector", ("image", "mask"), model="m", tiles=2), folder)


FAILURES = [
    (spec(), "stages.a: 'run' is missing; add it, such as \"run: my_stage.py:Name\""),
    (
        spec("mine.py:Detecter"),
        "stages.a.run: mine.py has no 'Detecter'; did you mean 'Detector'?",
    ),
    (spec("avrt.stages.fusion:Traker"), "no 'Traker'; did you mean 'Tracker'?"),
    (spec("min.py:Detector"), "min.py'; did you mean 'mine.py'?"),
    (
        spec("mine:Detector"),
        "no module named 'mine'; for the file beside the pipeline write 'mine.py:Name'",
    ),
    (spec("avrt.modle:Stage"), "no module named 'avrt.modle'; did you mean 'model'?"),
    (spec("numppy.linalg:Stage"), "no module named 'numppy'; did you mean 'numpy'?"),
    (
        spec("qqqqqqqqqqqq.x:Stage"),
        "'qqqqqqqqqqqq'; install it, or write 'file.py:Name' for a file of your own",
    ),
    (spec("avrt.units.deep:Stage"), "no module named 'avrt.units.deep'; none is defined"),
    (spec("syntax.py:x"), "syntax.py failed: SyntaxError: invalid syntax (syntax.py, line 1)"),
    (spec("raises.py:x"), "raises.py failed: NameError: name 'undefined' is not defined at "),
    (spec("imports.py:x"), "ModuleNotFoundError: No module named 'no_such_package_anywhere' at"),
    (spec(".x:Stage"), "importing .x failed: TypeError"),
    (spec("mine.py:NUMBER"), "stages.a.run: expected a stage class or a function, found 3"),
    (
        spec("mine.py:detector"),
        "stages.a.run: expected a stage class, found an instance of it",
    ),
    (
        spec("mine.py:NoStage"),
        "stages.a.run: NoStage is no stage; derive it: class NoStage(avrt.Stage)",
    ),
    (spec("mine.py:Empty"), "stages.a.run: Empty has no process()"),
    (spec("mine.py:Greedy"), "stages.a.run: inputs are named parameters, found *images"),
    (
        spec("mine.py:Detector", ("imag",), model="m"),
        "stages.a.inputs.imag: Detector has no input 'imag'; did you mean 'image'?",
    ),
    (
        spec("mine.py:Detector", (), model="m"),
        "stages.a.inputs: Detector needs the input 'image'; add it to 'inputs'",
    ),
    (
        spec("mine.py:Strict", tile=1),
        "stages.a.params.tile: Strict has no parameter 'tile'; did you mean 'tiles'?",
    ),
    (
        spec("mine.py:Strict"),
        "stages.a.params: Strict needs the parameter 'tiles'; add it to 'params'",
    ),
    (
        spec("mine.py:blur", size=3),
        (
            "stages.a.params: blur is a function and takes no parameters; "
            "write a class derived from Stage"
        ),
    ),
    (
        spec("mine.py:Detector", model="m", tiles=0),
        (
            "stages.a.params: Detector cannot be made with these parameters: "
            "ValueError: tiles must be at least 1, found 0 at "
        ),
    ),
    (spec("mine.py:Detector", model="m", odd=1), "stages.a.params.extra: is not used"),
]


@pytest.mark.parametrize(("wrong", "message"), FAILURES)
def test_a_stage_that_does_not_fit_is_told_in_one_line(folder, wrong, message):
    line = told(build, wrong, folder)
    assert message in line
    assert line.startswith("stages.a")


def test_the_users_own_line_is_named(folder):
    assert told(resolve, "raises.py:x", folder).endswith(f"at {folder}/raises.py:2")


def test_the_users_exception_stays_the_cause(folder):
    with pytest.raises(SpecError) as caught:
        check_binding(spec("raises.py:x"), folder)
    assert isinstance(caught.value.__cause__, NameError)


def test_a_module_whose_own_import_fails(tmp_path, monkeypatch):
    (tmp_path / "avrt_test_outer.py").write_text("import avrt_test_inner\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    line = told(resolve, "avrt_test_outer:Stage")
    assert line.startswith(
        "importing avrt_test_outer failed: ModuleNotFoundError: "
        "No module named 'avrt_test_inner' at "
    )


def test_a_module_that_raises(tmp_path, monkeypatch):
    (tmp_path / "avrt_test_raises.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    line = told(resolve, "avrt_test_raises:Stage")
    assert "failed: ZeroDivisionError: division by zero" in line


def test_a_target_in_memory_is_checked_like_a_file():
    class Counter(Stage):
        def process(self, image):
            return image

    check_target(spec(), Counter)
    assert "Counter has no input 'img'" in told(check_target, spec(inputs=("img",)), Counter)


def test_a_stage_file_imports_its_neighbours(tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("LIMIT = 7\n", encoding="utf-8")
    text = "from neighbour_of_mine import LIMIT\n\n\ndef near(cloud):\n    return LIMIT\n"
    (tmp_path / "with_neighbour.py").write_text(text, encoding="utf-8")
    assert resolve("with_neighbour.py:near", tmp_path)(None) == 7


class Scalars(Stage):
    def __init__(self, limit: float = 1.0, count: int = 1, name: str = "", on: bool = False):  # noqa: FBT001, FBT002
        pass

    def process(self, cloud):
        return cloud


def scalar_spec(params):
    return StageSpec(
        name="it",
        device="cpu",
        wcet_ns=1,
        deadline_ns=1,
        inputs=(InputSpec(name="cloud", source="lidar"),),
        trigger="cloud",
        params=params,
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"limit": "8 m"}, "stages.it.params.limit: expected a number, found '8 m'"),
        ({"count": 1.5}, "stages.it.params.count: expected a whole number, found 1.5"),
        ({"count": True}, "stages.it.params.count: expected a whole number, found True"),
        ({"name": 3}, "stages.it.params.name: expected text, found 3"),
        ({"on": 1}, "stages.it.params.on: expected a boolean, found 1"),
    ],
)
def test_a_parameter_is_what_its_annotation_says(params, message):
    spec = scalar_spec(params)
    with pytest.raises(SpecError) as raised:
        check_target(spec, Scalars)
    assert str(raised.value) == message


def test_a_whole_number_is_a_number():
    check_target(scalar_spec({"limit": 3}), Scalars)
