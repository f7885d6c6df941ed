"""What must come of a campaign's row: the section `expect`.

    expect: {outcome: masked, detect: {by: vote, within: 20 ms}, levels: [], incorrect: 0}

What is not said is not asked for, but for the outcome: no silent corruption, no hang, no crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.config.reader import Key, build, name, one_of, section
from avrt.config.shape import LASTING, NAME, NONE_OR_MORE, list_of, object_of, shape_of
from avrt.config.shares import above_zero, whole
from avrt.errors import did_you_mean
from avrt.model.campaign import DETECTORS, OUTCOMES, Expected
from avrt.model.levels import levels_of

if TYPE_CHECKING:
    from avrt.config.node import Node
    from avrt.config.reader import Shape
    from avrt.model.spec import PipelineSpec


def read_expected(node: Node, pipeline: PipelineSpec) -> Expected:
    values = section(node, EXPECT_KEYS)
    found = values.pop("detect", None)
    if isinstance(found, dict):
        values |= found
    elif found is not None:
        values["silent"] = True
    known = [level.name for level in levels_of(pipeline)]
    given = node.mapping()
    for item in given["levels"].items() if "levels" in given else ():
        if item.value not in known:
            raise item.fail(f"no level named {item.text!r}; {did_you_mean(item.text, known)}")
    return build(Expected, values)


def _detect(node: Node) -> object:
    """Return what must be detected; the word `nothing` for what must not be."""
    if node.value == NOTHING:
        return NOTHING
    return section(node, DETECT_KEYS)


def _words(*choices: str) -> Words:
    return Words(choices)


class Words:
    """Reads one of these words, or a list of some."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        self._one = one_of(*choices)
        item = shape_of(self._one)
        self.shape: Shape = {"anyOf": [item, list_of(item, least=1)]}

    def __call__(self, node: Node) -> tuple[str, ...]:
        if not isinstance(node.value, tuple):
            return (self._one(node),)
        if not node.value:
            raise node.fail("expected at least one")
        return tuple(self._one(item) for item in node.value)


def _levels(node: Node) -> tuple[str, ...]:
    return tuple(name(item) for item in node.items("a list of levels, in order"))


NOTHING = "nothing"
_OUTCOME, _BY = _words(*OUTCOMES), _words(*DETECTORS)
DETECT_KEYS = (
    Key(
        "by",
        "detected_by",
        _BY,
        about="what may tell of it first; anything unless given",
        shape=_BY.shape,
    ),
    Key(
        "within",
        "detected_ns",
        above_zero,
        about="at most so long after the injection",
        shape=LASTING,
    ),
)
EXPECT_KEYS = (
    Key(
        "outcome",
        "outcomes",
        _OUTCOME,
        about="the classes it may have; none of the harmful ones unless given",
        shape=_OUTCOME.shape,
    ),
    Key(
        "detect",
        "detect",
        _detect,
        about="what tells of it, or 'nothing': then nothing may",
        shape={"anyOf": [{"const": NOTHING}, object_of(DETECT_KEYS)]},
    ),
    Key("levels", "levels", _levels, about="the levels entered, in order", shape=list_of(NAME)),
    Key(
        "max_gap",
        "gap_ns",
        above_zero,
        about="longest time without an output of a critical stage that runs",
        shape=LASTING,
    ),
    Key("incorrect", "incorrect", whole, about="most wrong outputs", shape=NONE_OR_MORE),
    Key("lost", "lost", whole, about="most outputs that do not come", shape=NONE_OR_MORE),
    Key(
        "recover_within",
        "recover_ns",
        above_zero,
        about="time from the injection until all outputs are good again",
        shape=LASTING,
    ),
)
