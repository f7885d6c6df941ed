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
    from typing import Literal

    from avrt.kernel.state import State
    from avrt.model.message import Origin
    from avrt.model.spec import ChainSpec


class Watch:
    """One armed promise: `capture_ns` is still unanswered or still in force."""

    __slots__ = ("capture_ns", "chain", "live", "promise")

    def __init__(self, chain: Chain, promise: Literal["reaction", "age"], capture_ns: int) -> None:
        self.chain = chain
        self.promise: Literal["reaction", "age"] = promise
        self.capture_ns = capture_ns
        self.live = True


class Chain:
    """One declared chain: what its newest output knows and rests on."""

    def __init__(self, spec: ChainSpec) -> None:
        self.spec = spec
        self.head = spec.path[0]
        self.tail = spec.path[-1]
        self.known_ns: int | None = None
        self.resting_ns: int | None = None
        self._watches: dict[str, Watch] = {}

    def started(self, state: State, capture_ns: int) -> None:
        """Note a first capture: from now on an output is owed."""
        if not self._watches and self.known_ns is None:
            self._arm(state, "reaction", self.spec.reaction_ns, capture_ns)

    def published(self, state: State, activation: int, origin: Origin) -> None:
        """Note an output that rests on `origin` of the head."""
        now_ns = state.now_ns
        reaction_ns = None
        if self.known_ns is None or origin.newest_ns > self.known_ns:
            reaction_ns = None if self.known_ns is None else now_ns - self.known_ns
            self.known_ns = origin.newest_ns
            self._arm(state, "reaction", self.spec.reaction_ns, origin.newest_ns)
        age_ns = None if self.resting_ns is None else now_ns - self.resting_ns
        self.resting_ns = origin.oldest_ns
        self._arm(state, "age", self.spec.age_ns, origin.oldest_ns)
        path_ns = now_ns - origin.oldest_ns
        record = ChainRecord(self.spec.name, now_ns, activation, reaction_ns, age_ns, path_ns)
        state.out.append(Record(record))

    def limit_passed(self, state: State, watch: Watch) -> None:
        """Record a promise that is broken at this instant."""
        watch.live = False
        limit_ns = self.spec.reaction_ns if watch.promise == "reaction" else self.spec.age_ns
        assert limit_ns is not None
        broken = ChainBroken(
            self.spec.name, state.now_ns, watch.promise, limit_ns, watch.capture_ns
        )
        state.out.append(Record(broken))

    def _arm(
        self,
        state: State,
        promise: Literal["reaction", "age"],
        limit_ns: int | None,
        capture_ns: int,
    ) -> None:
        if limit_ns is None:
            return
        old = self._watches.get(promise)
        if old is not None:
            old.live = False
        watch = Watch(self, promise, capture_ns)
        self._watches[promise] = watch
        state.timers.add(capture_ns + limit_ns, CHAIN, watch)
