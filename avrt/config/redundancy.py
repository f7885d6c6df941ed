"""The key `redundancy` of a stage: how often it runs, and how its outputs are voted on.

Copies of the same code agree on the same wrong output. So all of them in one failure domain are
refused unless the file says so: `one_domain: true`. Copies of different code compute in different
orders and precisions, so how far healthy ones differ has to be said, or to be measured: `tolerance`
and `within` are a number, or a file of `avrt profile -o`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal, cast

from avrt.config.node import Node
from avrt.config.profile import read_allowance
from avrt.config.reader import (
    Key,
    boolean,
    build,
    duration,
    integer,
    one_of,
    section,
    text,
)
from avrt.config.reference import reference
from avrt.config.shape import TEXT, list_of
from avrt.errors import SpecError
from avrt.model.spec import RedundancySpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from avrt.model.spec import StageSpec

BY_NUMBERS = ("tolerance", "number", "angle")
"""Votes that compare numbers, whatever the outputs are."""
COPIES = range(2, 10)
MEASURED: tuple[Literal["tolerance", "within"], ...] = ("tolerance", "within")
MEANT = re.compile(r"\b(Tracks|Plan)\b")
"""What vote `kind` compares by what it means, as annotations have it."""
ONLY_FOR = {
    "tolerance": ("kind", "tolerance", "number"),
    "within": ("number", "angle"),
    "safe": ("number",),
    "order": ("choice",),
}


def redundancy(node: Node, stage: str, device: str) -> RedundancySpec:
    """Return how a stage is replicated, which runs on a device.

    Raises:
        SpecError: a key is wrong, all copies run the same code and the file does not say so, or
            they run different code and it does not say by how much their outputs may differ.
    """
    values = section(node, REDUNDANCY_KEYS)
    keys = node.mapping()
    runs = cast("tuple[str, ...]", values.get("runs", ()))
    for allowance in MEASURED:
        if isinstance(values.get(allowance), Node):
            found = read_allowance(keys[allowance], stage, device, runs, allowance)
            values[allowance] = found
    spec = build(RedundancySpec, values)
    if spec.runs and len(spec.runs) != spec.copies:
        what = f"expected one for each of the {spec.copies} copies, found {len(spec.runs)}"
        raise keys["runs"].fail(what)
    for key, votes in ONLY_FOR.items():
        if key in keys and spec.vote not in votes:
            what = f"is only for vote: {' or '.join(votes)}, and this stage has {spec.vote}"
            raise keys[key].fail(what)
    if len(set(spec.runs)) <= 1 and len(set(spec.devices)) <= 1 and not spec.one_domain:
        what = (
            f"all {spec.copies} copies run the same code on the same device, so one fault may hit "
            "all of them: give different 'runs' or 'devices', or accept it with 'one_domain: true'"
        )
        raise node.fail(what)
    if len(set(spec.runs)) > 1 and spec.vote in BY_NUMBERS and not keys.keys() & set(MEASURED):
        raise node.fail(_unmeasured("within" if spec.vote in ONLY_FOR["within"] else "tolerance"))
    return spec


def homes_of(node: Node) -> tuple[str, ...]:
    """Return where the copies of a stage belong, if that is said."""
    given = node.mapping() if isinstance(node.value, dict) else {}
    return _devices(given["devices"]) if "devices" in given else ()


def check_copies(stage: StageSpec, returned: Iterable[str]) -> None:
    """Refuse copies of different code of which nothing says by how much their outputs may differ.

    Args:
        stage: a redundant stage that is voted on by what its outputs are.
        returned: what each copy says that it returns, as it is written there.

    Raises:
        SpecError: they do not all return what is compared by what it means, and there is no
            tolerance.
    """
    spec = stage.redundancy
    if spec is None or spec.vote != "kind" or len(set(spec.runs)) <= 1:
        return
    if spec.tolerance is None and not all(MEANT.search(text) for text in returned):
        more = "; where they return Tracks or Plan, let each say so: -> Plan"
        raise SpecError(_unmeasured("tolerance") + more, ("stages", stage.name, "redundancy"))


def _unmeasured(key: str) -> str:
    return (
        f"its copies run different code, so healthy ones differ: say by how much with {key!r}; to "
        "measure it, give any number, run avrt profile -o FILE, and write FILE in its place"
    )


def _copies(node: Node) -> int:
    copies = integer(node)
    if copies not in COPIES:
        raise node.fail(f"expected {COPIES[0]} to {COPIES[-1]} copies, found {copies}")
    return copies


def _share(node: Node) -> float | Node:
    if isinstance(node.value, str):
        return node
    found = _number(node)
    if not 0 < found < 1:
        raise node.fail(f"expected a share between 0 and 1, such as 1e-5, found {node.shown}")
    return found


def _within(node: Node) -> float | Node:
    if isinstance(node.value, str):
        return node
    found = _number(node)
    if not 0 <= found < math.inf:
        raise node.fail(f"expected a number of 0 or more, found {node.shown}")
    return found


def _number(node: Node) -> float:
    """Return a number; what is none lies nowhere."""
    return float(node.text) if type(node.value) in {int, float} else math.nan


def _order(node: Node) -> tuple[str, ...]:
    return tuple(text(item) for item in node.items("a list of texts"))


def _devices(node: Node) -> tuple[str, ...]:
    return tuple(text(item) for item in node.items("a list of devices"))


def _runs(node: Node) -> tuple[str, ...]:
    return tuple(reference(item) for item in node.items("a list of what each copy runs"))


REDUNDANCY_KEYS = (
    Key(
        "copies",
        "copies",
        _copies,
        "3",
        "how often it runs for each release",
        shape={"type": "integer", "minimum": COPIES[0], "maximum": COPIES[-1]},
    ),
    Key(
        "vote",
        "vote",
        one_of("kind", "exact", "tolerance", "number", "angle", "choice"),
        about="how outputs are compared: object lists and plans by what they mean and all else "
        "number by number (kind, the default), to the bit, number by number; or as one number, "
        "one angle in radians, or one of several texts",
    ),
    Key(
        "tolerance",
        "tolerance",
        _share,
        about="by what share of an array's largest magnitude its numbers may differ, or a file of "
        "avrt profile -o that says so; 1e-5 unless given",
        shape={"anyOf": [{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, TEXT]},
    ),
    Key(
        "within",
        "within",
        _within,
        about="by how much a number or an angle may differ, in its own unit, or a file of avrt "
        "profile -o that says so; 0 unless given",
        shape={"anyOf": [{"type": "number", "minimum": 0}, TEXT]},
    ),
    Key(
        "safe",
        "safe",
        one_of("least", "greatest"),
        about="which of numbers that differ is the conservative one; none unless given",
    ),
    Key(
        "order",
        "order",
        _order,
        about="what may be chosen, the most conservative first; anything unless given",
        shape=list_of(TEXT, least=1),
    ),
    Key(
        "decide_before",
        "decide_ns",
        duration,
        about="how long before the deadline what is there is decided over; 0 unless given",
    ),
    Key(
        "runs",
        "runs",
        _runs,
        about="what each copy runs, where it is not the stage's run",
        shape=list_of(TEXT, least=COPIES[0], most=COPIES[-1]),
    ),
    Key(
        "one_domain",
        "one_domain",
        boolean,
        about="all copies may run the same code, so that one fault may hit all of them",
    ),
    Key(
        "single",
        "single",
        boolean,
        about="one valid output that the stage's acceptance test passes is enough; false unless "
        "given",
    ),
    Key(
        "spare",
        "spare",
        integer,
        about="how many of the copies run only when the others cannot decide, and only if they can "
        "still be in time; 0 unless given",
        shape={"type": "integer", "minimum": 0, "maximum": COPIES[-1] // 2},
    ),
    Key(
        "devices",
        "devices",
        _devices,
        about="where each copy belongs, where it is not the stage's device",
        shape=list_of(TEXT, least=COPIES[0], most=COPIES[-1]),
    ),
)
