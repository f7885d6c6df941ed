"""End-to-end promises, watched while they are open and not only when an output comes.

For a chain from source `s` to a stage, with `c_k` the capture time of message k of `s`:

* reaction: an external change just after `c_k` is first known to the output that rests on a newer
  message; its publication minus `c_k` (maximum reaction time, MRT);
* age: an output that rests on capture `c` stays in force until the next one is published; that
  instant minus `c` (maximum data age, MDA);
* path: from the oldest capture an output rests on to its own publication.

Sources: Feiertag et al. 2008; Duerr et al. 2019; Guenzel et al. 2021. A chain that starts at a
timer stage counts from the instant at which that stage reads. Both promises have a timer, so a
chain whose output never comes is seen at its limit. Origins are merged per source (O(1)), so where
several paths join, reaction follows the newest and age the oldest of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.kernel.timers import CHAIN
from avrt.model.commands import Record
from avrt.model.records import ChainBroken, ChainRecord

if TYPE_CHECKING:
    from avrt.kernel.buffers import Buffer
    from avrt.kernel.job import Activation
    from avrt.kernel.state import State
    from avrt.kernel.timers import Timers
    from avrt.model.message import Origin
    from avrt.model.records import Promise
    from avrt.model.spec import ChainSpec, PipelineSpec


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
    """All declared chains of a pipeline."""

    def __init__(self, spec: PipelineSpec, state: State) -> None:
        self._state = state
        self._chains = [Chain(chain, state.timers) for chain in spec.chains]
        self.heads = frozenset(chain.head for chain in self._chains)

    def read(self, head: str, capture_ns: int) -> None:
        """Note that a chain's head took in something captured at this time."""
        for chain in self._chains:
            if chain.head == head:
                chain.started(capture_ns)

    def published(self, activation: Activation, buffer: Buffer) -> None:
        """Note a publication; it may be the head of one chain and the tail of another."""
        for chain in self._chains:
            if chain.head == buffer.producer:
                chain.started(buffer.capture_ns)
            if chain.tail == buffer.producer and chain.head in buffer.origins:
                origin = buffer.origins[chain.head]
                record = chain.published(self._state.now_ns, activation.id, origin)
                self._state.out.append(Record(record))

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


class Chain:
    """One declared chain: what its newest output knows and rests on."""

    def __init__(self, spec: ChainSpec, timers: Timers) -> None:
        self.spec = spec
        self.head = spec.path[0]
        self.tail = spec.path[-1]
        self.known_ns: int | None = None
        self.resting_ns: int | None = None
        self._timers = timers
        self._watches: dict[Promise, Watch] = {}

    def started(self, capture_ns: int) -> None:
        """Note a first capture: from now on an output is owed."""
        if not self._watches and self.known_ns is None:
            self._arm("reaction", self.spec.reaction_ns, capture_ns)

    def published(self, now_ns: int, activation: int, origin: Origin) -> ChainRecord:
        """Note an output that rests on `origin` of the head."""
        reaction_ns = None
        if self.known_ns is None or origin.newest_ns > self.known_ns:
            reaction_ns = None if self.known_ns is None else now_ns - self.known_ns
            self.known_ns = origin.newest_ns
            self._arm("reaction", self.spec.reaction_ns, origin.newest_ns)
        age_ns = None if self.resting_ns is None else now_ns - self.resting_ns
        self.resting_ns = origin.oldest_ns
        self._arm("age", self.spec.age_ns, origin.oldest_ns)
        path_ns = now_ns - origin.oldest_ns
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
