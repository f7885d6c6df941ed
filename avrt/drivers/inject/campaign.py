"""The runs of a campaign.

* golden: the drive without any tap, once. It must be quiet, but for what is odd about its log: an
  alarm in it could not be told from one that a fault raised.
* dummy: the taps of all rows in place and nothing to do, once. It must decide and publish what the
  golden run did, or the taps are a fault of their own (NVBitFI begins with such a run).
* faulty: each row with its faults, which were drawn before any run.
* pairs: the faults of two rows in one run, the second's moved by up to PAIR_NS or PAIR_FRAMES. Of
  a pair only this is asked: no wrong output that nobody was told of, no hang, no crash.
* clean: drives without faults, of which nothing may tell of any.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from avrt.drivers.draws import generator
from avrt.drivers.inject.rules import rules_for
from avrt.drivers.inject.run import run_once
from avrt.errors import SpecError
from avrt.metrics.campaign import CleanResult, PairResult, RowResult, unmet
from avrt.metrics.injection import judge
from avrt.payload.digest import digest_of
from avrt.units import NEVER_NS, NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.drivers.inject.run import Bench
    from avrt.metrics.observed import Observed
    from avrt.model.campaign import Injection, Row

PAIR_NS = 2 * NS_PER_S
PAIR_FRAMES = 20
SEED_BITS = 62
NEVER_FRAME = 1 << 60
SIMULATED = "simulated"


class Campaign:
    """A campaign about to run on a bench, its golden run done."""

    def __init__(self, bench: Bench, rows: Iterable[Row]) -> None:
        """Do the golden run; `rows` are all that may run.

        Raises:
            SpecError: something in it is an alarm, or it does not come to its end.
        """
        self._bench = bench
        self.golden = run_once(bench)
        _check_quiet(self.golden)
        self._rules = rules_for(bench.spec, self.golden)
        self._idle = [idle(fault) for row in rows for fault in row.faults]

    @cached_property
    def _taps_are_silent(self) -> bool:
        return is_same(self.golden, run_once(self._bench, self._idle))

    def row(self, row: Row, seed: int) -> RowResult:
        """Run a row with its faults as this seed draws them."""
        faults = drawn(row.faults, seed, row.id)
        faulty = run_once(self._bench, faults)
        judged = judge(self.golden, faulty, self._rules)
        failed = list(unmet(row.expect, judged))
        if (judged.injected_ns or 0) + self._rules.silent_ns > self._bench.end_ns:
            failed.insert(0, f"the drive goes on for less than {format_ns(self._rules.silent_ns)}")
        missing = len(set(faults)) - len(faulty.injected_ns)
        if missing:
            failed.insert(0, f"{missing} of its faults hit nothing")
        if not self._taps_are_silent:
            failed.insert(0, "the taps alone change the run")
        return RowResult(row, seed, faults, self._is_simulated(faults), judged, tuple(failed))

    def pairs(self, rows: Mapping[str, Row], count: int, seed: int) -> Iterator[PairResult]:
        """Run so many pairs of different rows; the same seed gives the same pairs.

        Known gaps are left aside: that nothing tells of them is known.
        """
        ids = [name for name, row in rows.items() if not row.gap]
        if len(ids) < 2:
            raise SpecError("a pair takes two rows without a gap; write another one", ("rows",))
        rng = generator(seed, "pairs")
        for number in range(count):
            first, second = (ids[int(place)] for place in rng.choice(len(ids), 2, replace=False))
            by_ns, by_frames = int(rng.integers(PAIR_NS)), int(rng.integers(PAIR_FRAMES))
            moved = [_moved(fault, by_ns, by_frames) for fault in rows[second].faults]
            faults = drawn((*rows[first].faults, *moved), seed, f"pair {number}")
            judged = judge(self.golden, run_once(self._bench, faults), self._rules)
            yield PairResult((first, second), faults, judged)

    def _is_simulated(self, faults: Iterable[Injection]) -> bool:
        kinds = {device.name: device.type for device in self._bench.spec.devices}
        return any(f.place == "device" and kinds[f.target] == SIMULATED for f in faults)


def clean(benches: Iterable[tuple[int, Bench]], frames: int) -> CleanResult:
    """Run drives without faults until so many frames were seen, or there are no more drives.

    `benches` come with the seeds of their drives.
    """
    seen = drives = levels = 0
    alarms = []
    for seed, bench in benches:
        observed = run_once(bench)
        if observed.crash:
            raise SpecError(f"the drive of seed {seed} does not come to its end: {observed.crash}")
        alarms += [(seed, found) for found in observed.detections]
        levels += len(observed.levels)
        seen, drives = seen + bench.frames, drives + 1
        if seen >= frames:
            break
    return CleanResult(seen, drives, tuple(alarms), levels)


def drawn(faults: Sequence[Injection], seed: int, name: str) -> tuple[Injection, ...]:
    """Return faults with the seeds of whatever is drawn for them in a run of this name."""
    seeds = generator(seed, name).integers(1 << SEED_BITS, size=len(faults))
    return tuple(replace(fault, seed=int(own)) for fault, own in zip(faults, seeds, strict=True))


def idle(fault: Injection) -> Injection:
    """Return a fault that is in place and never comes."""
    if fault.frame is not None:
        return replace(fault, frame=NEVER_FRAME)
    return replace(fault, at_ns=NEVER_NS)


def is_same(golden: Observed, other: Observed) -> bool:
    """Whether two runs decided and published the same, and came to their ends."""
    same = golden.digest == other.digest and golden.crash == other.crash == ""
    return same and _payloads(golden) == _payloads(other)


def _payloads(observed: Observed) -> dict[str, list[bytes]]:
    return {
        stage: [digest_of(output.payload) for output in outputs]
        for stage, outputs in observed.outputs.items()
    }


def _moved(fault: Injection, by_ns: int, by_frames: int) -> Injection:
    if fault.frame is not None:
        return replace(fault, frame=fault.frame + by_frames)
    assert fault.at_ns is not None
    return replace(fault, at_ns=fault.at_ns + by_ns)


def _check_quiet(golden: Observed) -> None:
    if golden.crash:
        raise SpecError(f"the run without faults does not come to its end: {golden.crash}")
    alarms = [found for found in golden.detections if found.by != "log"]
    if alarms:
        count, first = len(alarms), alarms[0]
        at = f"{first.by} ({first.what}) at {format_ns(first.at_ns)}"
        what = f"the run without faults is not quiet: {count} alarms, the first is {at}"
        raise SpecError(f"{what}; a fault can be told in a quiet run only")
