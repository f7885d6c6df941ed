"""End-to-end promises, watched while they are open and not only when an output comes.

Along a chain's path every output rests on exactly one message of the head; `c` is when that was
captured:

* reaction: an external change just after `c` is first known to the output that rests on a newer
  message; its publication minus `c` (maximum reaction time, MRT);
* age: an output that rests on `c` stays in force until the next one is published; that instant
  minus `c` (maximum data age, MDA);
* path: from `c` to the output's own publication.

Sources: Feiertag et al. 2008; Duerr et al. 2019; Guenzel et al. 2021. A chain that starts at a
timer stage counts from the instant at which that stage reads. Both promises have a timer, so a
chain whose output never comes is seen at its limit. Where another path leads from the same source
to the same stage, it is another chain and has no part in this one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from avrt.kernel.timers import CHAIN
from avrt.model.commands import Record
from avrt.model.records import ChainBroken, ChainRecord
from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from avrt.kernel.buffers import Buffer
    from avrt.kernel.job import Activation
    from avrt.kernel.state import State
    from avrt.kernel.timers import Timers
    from avrt.model.records import Promise
    from avrt.model.spec import ChainSpec, PipelineSpec

NO_HEADS: Mapping[int, int] = {}


class Watch:
    """One armed promise: `capture_ns` is still unanswered or still in force."""

    __slots__ = ("capture_ns", "chain", "limit_ns", "live", "promise")

    def __init__(self, chain: Chain, promise: Promise, limit_ns: int, capture_ns: int) -> None:
        self.chain = chain
        self.promise: Promise = promise
        self.limit_ns = limit_ns
        self.capture_ns = capture_ns
        self.live = True


class Chains:
    """All declared chains of a pipeline, by their number in the file."""

    def __init__(self, spec: PipelineSpec, state: State) -> None:
        self._state = state
        self._chains = [
            Chain(chain, state.timers, _leading(spec, chain.path[-1])) for chain in spec.chains
        ]
        self._heads: dict[str, list[int]] = {}
        self._tails: dict[str, list[int]] = {}
        self._links: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        stages = {stage.name: stage for stage in spec.stages}
        for number, chain in enumerate(self._chains):
            self._heads.setdefault(chain.spec.path[0], []).append(number)
            self._tails.setdefault(chain.spec.path[-1], []).append(number)
            for before, name in pairwise(chain.spec.path):
                inputs = stages[name].inputs
                places = tuple(i for i, item in enumerate(inputs) if item.source == before)
                self._links.setdefault(name, []).append((number, places))

    def read(self, head: str, capture_ns: int) -> Mapping[int, int]:
        """Note what a source, or a timer stage, took in; return it for the message it becomes."""
        numbers = self._heads.get(head)
        if numbers is None:
            return NO_HEADS
        for number in numbers:
            self._chains[number].read(capture_ns)
        return dict.fromkeys(numbers, capture_ns)

    def carried(self, activation: Activation) -> Mapping[int, int]:
        """Return what an activation's output rests on along each chain through its stage."""
        name = activation.stage.name
        links = self._links.get(name)
        if links is None:
            return dict.fromkeys(self._heads.get(name, ()), activation.capture_ns)
        heads: dict[int, int] = {}
        for number, places in links:
            for place in places:
                buffer = activation.inputs[place]
                if buffer is not None and number in buffer.heads:
                    heads[number] = buffer.heads[number]
        return heads

    def mode_entered(self, left_out: Collection[str]) -> None:
        """Suspend the promises of chains through what is left out, and begin others anew."""
        for chain in self._chains:
            chain.go_on(is_whole=not any(name in left_out for name in chain.spec.path))

    def published(self, activation: Activation, buffer: Buffer) -> None:
        """Note a publication at the end of the chains that end here."""
        for number in self._tails.get(buffer.producer, ()):
            chain = self._chains[number]
            if number in buffer.heads and chain.counts(buffer.heads[number]):
                record = chain.published(self._state.now_ns, activation.id, buffer.heads[number])
                self._state.out.append(Record(record))

    def is_open(self, watch: Watch) -> bool:
        """Whether a promise still has to be kept.

        Once releases have ceased, only where something newer may still come out, which is so while
        a release is underway that leads to the end of the chain: what waits for a reader that is
        not released any more breaks no promise, for the log ended before it did.
        """
        if not watch.live:
            return False
        state = self._state
        chain = watch.chain
        return not state.draining or (
            chain.is_awaited and any(state.underway[name] for name in chain.leading)
        )

    def limit_passed(self, watch: Watch) -> None:
        """Record a promise that is broken at this instant."""
        watch.live = False
        broken = ChainBroken(
            watch.chain.spec.name,
            self._state.now_ns,
            watch.promise,
            watch.limit_ns,
            watch.capture_ns,
        )
        self._state.out.append(Record(broken))


def _leading(spec: PipelineSpec, last: str) -> tuple[str, ...]:
    """Return the stages by whose work a stage may come to publish, itself among them."""
    stages = {stage.name: stage for stage in spec.stages}
    found, waiting = dict[str, None](), [last]
    while waiting:
        name = waiting.pop()
        if name in stages and name not in found:
            found[name] = None
            waiting += [item.source for item in stages[name].inputs]
    return tuple(found)


class Chain:
    """One declared chain: what its newest output knows and rests on.

    Attributes:
        leading: the stages by whose work its last stage may come to publish.
        is_whole: no stage of it is left out.
    """

    def __init__(self, spec: ChainSpec, timers: Timers, leading: tuple[str, ...]) -> None:
        self.spec = spec
        self.leading = leading
        self.newest_ns: int | None = None
        self.known_ns: int | None = None
        self.resting_ns: int | None = None
        self.is_whole = True
        self._seen_ns = self._before_ns = -NEVER_NS
        self._timers = timers
        self._watches: dict[Promise, Watch] = {}

    @property
    def is_awaited(self) -> bool:
        """Whether the head has taken in something that no output knows."""
        newest_ns, known_ns = self.newest_ns, self.known_ns
        return newest_ns is not None and (known_ns is None or newest_ns > known_ns)

    def go_on(self, *, is_whole: bool) -> None:
        """Suspend all promises, or begin anew; nothing happens to a chain that goes on as it is."""
        if is_whole == self.is_whole:
            return
        self.is_whole, self._before_ns = is_whole, self._seen_ns
        self.newest_ns = self.known_ns = self.resting_ns = None
        for watch in self._watches.values():
            watch.live = False
        self._watches.clear()

    def read(self, capture_ns: int) -> None:
        """Note what the head took in; from the first time on an output is owed."""
        self._seen_ns = max(self._seen_ns, capture_ns)
        if not self.counts(capture_ns):
            return
        if self.newest_ns is None:
            self._arm("reaction", self.spec.reaction_ns, capture_ns)
        self.newest_ns = capture_ns if self.newest_ns is None else max(self.newest_ns, capture_ns)

    def counts(self, capture_ns: int) -> bool:
        """Whether something counts: the chain is whole, and it came after it was last suspended."""
        return self.is_whole and capture_ns > self._before_ns

    def published(self, now_ns: int, activation: int, capture_ns: int) -> ChainRecord:
        """Note an output that rests on what the head captured then."""
        reaction_ns = None
        if self.known_ns is None or capture_ns > self.known_ns:
            reaction_ns = None if self.known_ns is None else now_ns - self.known_ns
            self.known_ns = capture_ns
            self._arm("reaction", self.spec.reaction_ns, capture_ns)
        age_ns = None if self.resting_ns is None else now_ns - self.resting_ns
        self.resting_ns = capture_ns
        self._arm("age", self.spec.age_ns, capture_ns)
        path_ns = now_ns - capture_ns
        return ChainRecord(self.spec.name, now_ns, activation, reaction_ns, age_ns, path_ns)

    def _arm(self, promise: Promise, limit_ns: int | None, capture_ns: int) -> None:
        if limit_ns is None:
            return
        old = self._watches.get(promise)
        if old is not None:
            old.live = False
        watch = Watch(self, promise, limit_ns, capture_ns)
        self._watches[promise] = watch
        self._timers.add(capture_ns + limit_ns, CHAIN, watch)
