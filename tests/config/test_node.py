"""Python values become the same nodes as YAML; what is no plain data is refused."""

from __future__ import annotations

import pytest

from avrt.config.node import DEPTH_MAX, from_python, plain
from avrt.config.yaml_text import read_yaml
from avrt.errors import SpecError


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",
        "a: 0.5",
        "a: -1e3",
        "a: true",
        "a: ~",
        "a:",
        "a: [1, [x]]",
        "a: {b: 'yes'}",
        "a: '1'",
    ],
)
def test_yaml_reads_as_plain_values(text):
    value = plain(read_yaml(text, "p.yaml"))
    assert plain(from_python(value)) == value


def test_what_yaml_versions_read_differently_is_text_only_in_quotes():
    assert plain(read_yaml("a: ['yes', \"010\", 2024-01-01, x:y]", "p")) == {
        "a": ["yes", "010", "2024-01-01", "x:y"]
    }


@pytest.mark.parametrize("text", ["1_000", "010", "08", "0x1F", "12:30", "0b1", "9" * 19])
def test_ambiguous_numbers_are_refused(text):
    with pytest.raises(SpecError, match="is ambiguous"):
        read_yaml(f"a: {text}", "p.yaml")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_python_numbers_are_finite(number):
    with pytest.raises(SpecError, match=r"^a: expected a finite number"):
        from_python({"a": number})


def test_python_keys_are_names():
    with pytest.raises(SpecError, match="expected names as keys, found 3"):
        from_python({3: 4})


def test_a_value_that_holds_itself_is_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(SpecError, match=f"deeper than {DEPTH_MAX} levels"):
        from_python({"a": endless})


def test_other_objects_are_refused_by_type():
    with pytest.raises(SpecError, match=r"^a\.0: expected text, .* found a object"):
        plain(from_python({"a": [object()]}))


def test_what_is_shown_is_short_and_one_line():
    assert from_python("x\ny" * 100).shown.startswith("'x\\nyx\\ny")
    assert len(from_python("x" * 500).shown) == 65


def test_other_shapes_are_shown_by_their_kind():
    shapes = {"a": {}, "b": [], "c": None}
    shown = [node.shown for node in from_python(shapes).mapping().values()]
    assert shown == ["a mapping", "a list", "nothing"]


def test_unprintable_keys_are_quoted():
    with pytest.raises(SpecError) as caught:
        plain(from_python({"a\nb": object()}))
    assert str(caught.value).startswith("'a\\nb': expected text")


def test_the_nearest_node_is_the_deepest_that_exists():
    root = read_yaml("a:\n  b: 1\n", "p")
    assert root.nearest(("a", "b", "c")).place == "p:2"
    assert root.nearest(("a", "x")).place == "p:1"
    assert root.nearest(()).place == "p:1"
