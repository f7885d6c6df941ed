"""The `expect` section of a scenario: what must come of it.

    expect:
      all: {missed: 0}
      stages: {detect: {p99: at most 40 ms}}
      chains: {see: {reaction: at most 300 ms}}
      during:
        - {from: 2 s, to: 4 s, all: {met_rate: at least 220 Hz}}

Under `during` figures are of the jobs released from one time to another, the end exclusive.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.config.reader import Key, later, section
from avrt.config.shares import hertz, limit, percent, span, whole
from avrt.errors import did_you_mean
from avrt.model.scenario import BROKEN, COUNTS, ENDS, RATES, RESPONSES, SHARES, Expectation
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from avrt.config.node import Node
    from avrt.model.scenario import Scope, Window
    from avrt.model.spec import PipelineSpec


def read_expectations(
    node: Node | None, pipeline: PipelineSpec, duration_ns: int
) -> tuple[Expectation, ...]:
    """Return the expectations in the order in which they are looked at."""
    if node is None:
        return ()
    section(node, EXPECT_KEYS)
    given = node.mapping()
    reader = _Reader(pipeline, duration_ns)
    found = list(reader.jobs(given, None, ALL_KEYS, STAGE_KEYS))
    chains = [chain.name for chain in pipeline.chains]
    found += reader.members("chains", given.get("chains"), chains, CHAIN_KEYS)
    if "during" in given:
        for item in given["during"].items("a list of windows with what is expected in them"):
            found += reader.window(item)
    return tuple(found)


class _Reader:
    """Reads the expectations of one scenario."""

    def __init__(self, pipeline: PipelineSpec, duration_ns: int) -> None:
        self._stages = [stage.name for stage in pipeline.stages]
        self._duration_ns = duration_ns

    def window(self, node: Node) -> Iterator[Expectation]:
        """Yield what is expected of the jobs released in a window."""
        values = section(node, WINDOW_KEYS)
        given = node.mapping()
        from_ns, to_ns = values["from"], values["to"]
        assert isinstance(from_ns, int)
        assert isinstance(to_ns, int)
        if to_ns <= from_ns:
            raise given["to"].fail(f"expected more than 'from', found {given['to'].shown}")
        if to_ns > self._duration_ns:
            most = f"at most the duration {format_ns(self._duration_ns)}"
            raise given["to"].fail(f"expected {most}, found {given['to'].shown}")
        found = list(self.jobs(given, (from_ns, to_ns), WINDOW_ALL_KEYS, WINDOW_STAGE_KEYS))
        if not found:
            raise node.fail("nothing is expected of this window; add 'all' or 'stages'")
        yield from found

    def jobs(
        self,
        given: dict[str, Node],
        window: Window | None,
        all_keys: Iterable[Key],
        stage_keys: Iterable[Key],
    ) -> Iterator[Expectation]:
        """Yield what is expected of all jobs together, and by stage."""
        if "all" in given:
            yield from self._limits("all", "", given["all"], all_keys, window)
        yield from self.members("stages", given.get("stages"), self._stages, stage_keys, window)

    def members(
        self,
        scope: Scope,
        node: Node | None,
        known: list[str],
        keys: Iterable[Key],
        window: Window | None = None,
    ) -> Iterator[Expectation]:
        """Yield what is expected by stage or by chain."""
        members = {} if node is None else node.mapping(f"limits by {scope[:-1]}")
        for key, child in members.items():
            if key not in known:
                raise child.fail(f"no such {scope[:-1]}; {did_you_mean(key, known)}")
            yield from self._limits(scope, key, child, keys, window)

    def _limits(
        self, scope: Scope, of: str, node: Node, keys: Iterable[Key], window: Window | None
    ) -> Iterator[Expectation]:
        for figure, found in section(node, keys).items():
            assert isinstance(found, tuple)
            relation, value, told = found
            assert isinstance(value, Fraction)
            whole_run = (0, self._duration_ns) if figure in RATES else None
            yield Expectation(scope, of, figure, relation, value, told, window or whole_run)


def _keys(names: Iterable[str], read: Callable[[Node], Fraction | int]) -> tuple[Key, ...]:
    return tuple(Key(figure, figure, limit(read)) for figure in names)


_JOBS = (Key("all", "all", later), Key("stages", "stages", later))
EXPECT_KEYS = (*_JOBS, Key("chains", "chains", later), Key("during", "during", later))
WINDOW_KEYS = (
    Key("from", "from", span, example="2 s"),
    Key("to", "to", span, example="4 s"),
    *_JOBS,
)
WINDOW_ALL_KEYS = (
    *_keys((name for name in COUNTS if name != "violations"), whole),
    *_keys(SHARES, percent),
    *_keys(RATES, hertz),
)
WINDOW_STAGE_KEYS = (*WINDOW_ALL_KEYS, *_keys(RESPONSES, span))
_JOB_KEYS = (*_keys(COUNTS, whole), *_keys(SHARES, percent), *_keys(RATES, hertz))
ALL_KEYS = (*_JOB_KEYS, *_keys(BROKEN, whole))
STAGE_KEYS = (*_JOB_KEYS, *_keys(RESPONSES, span))
CHAIN_KEYS = (*_keys(BROKEN, whole), *_keys(ENDS, span))
