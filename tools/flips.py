"""What flipped bits in a planner do: alone, run twice, and voted on by three.

    python tools/flips.py RUN.mcap [--flips 1000] [--frames 10] [--json FILE]

RUN is a record with the tracks of a stage named `track`. Each flip is of one random bit of a 64-bit
number, drawn from its own seed, and goes through so many frames. In turn it is of a parameter of
the planner in all of them (a weight that stays wrong), of an element of the sampled trajectories in
the first one, or of an element of the plan that comes out of that:

* single: what the planner gives is published;
* screened: the same, unless it is no plan that could be driven (`Trajectory.problem`);
* twice: run again on the same planner; where the two disagree a third run decides;
* voted: one of three planners is hit, `avrt.safety.voter` decides.

An output is wrong if it does not agree with that of a planner without a fault. The worst frame of
each flip counts: all right, an output lost, or a wrong one let through.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

import avrt
from avrt.drivers.conditions import read_conditions
from avrt.errors import raised_by
from avrt.metrics.distribution import Distribution
from avrt.safety.trajectory import Trajectory
from avrt.safety.vote import Ballot, Rules, decide
from avrt.safety.voter import Voter
from avrt.stages.planning import planner as planning
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.model.message import Message
    from avrt.payload import Plan, Tracks

    Scene = Message[Tracks]

T = TypeVar("T", planning.Trajectories, planning.Plan)

KINDS = ("parameter", "activation", "output")
OUTCOMES = ("right", "lost", "let through")
SCHEMES = ("single", "screened", "twice", "voted")
PERIOD_NS = 100 * NS_PER_MS
AGREEMENT = Trajectory()
RULES = Rules(agreement=AGREEMENT, domains=("a", "b", "c"))


def flipped(value: float, bit: int) -> float:
    """Return a number with one bit of its IEEE 754 form flipped."""
    bits = np.array([value], np.float64).view(np.uint64)
    return float((bits ^ np.uint64(1 << bit)).view(np.float64)[0])


class Hit:
    """A planner with one flipped bit; a transient one is hit in its first run only."""

    def __init__(self, kind: str, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._kind = kind
        self._planner = planning.Planner()
        self._runs = 0
        self._bit = int(self._random.integers(64))
        if kind == "parameter":
            self._hit_parameter()

    def plan(self, scene: Scene) -> Plan | None:
        """Return what it gives, None if it raises."""
        made: list[Plan] = []
        is_first = self._runs == 0
        self._runs += 1
        before = planning.sample
        if is_first and self._kind == "activation":
            planning.sample = lambda *given: self._hit_one_of(before(*given))
        raised_by(lambda: made.append(self._planner.process(scene)))
        planning.sample = before
        if made and is_first and self._kind == "output":
            self._hit_one_of(made[0])
        return made[0] if made else None

    def _hit_parameter(self) -> None:
        names = [name for name, value in vars(self._planner).items() if isinstance(value, float)]
        limits = [field.name for field in fields(self._planner.limits)]
        place = int(self._random.integers(len(names) + len(limits)))
        if place < len(names):
            value = getattr(self._planner, names[place])
            setattr(self._planner, names[place], flipped(value, self._bit))
            return
        name = limits[place - len(names)]
        value = flipped(getattr(self._planner.limits, name), self._bit)
        self._planner.limits = replace(self._planner.limits, **{name: value})

    def _hit_one_of(self, made: T) -> T:
        """Flip the bit in one element of one of the arrays that something is made of."""
        values = [getattr(made, field.name) for field in fields(made)]
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        array = arrays[int(self._random.integers(len(arrays)))]
        place = np.unravel_index(int(self._random.integers(array.size)), array.shape)
        array[place] = flipped(array[place], self._bit)
        return made


def right(found: Plan | None, wanted: Plan) -> bool:
    return found is not None and not AGREEMENT.problem(found) and _agree(found, wanted)


def _agree(a: Plan, b: Plan) -> bool:
    return AGREEMENT.distance(a, b) <= 1


def ballot(replica: int, plan: Plan | None) -> Ballot:
    return Ballot(replica, abstains="crashed") if plan is None else Ballot(replica, plan)


def twice(hit: Hit, scene: Scene) -> Plan | None:
    """Return what two runs agree on, or two of three."""
    plans = [hit.plan(scene), hit.plan(scene)]
    for runs in (2, 3):
        if len(plans) < runs:
            plans.append(hit.plan(scene))
        screened = [
            ballot(i, None if plan is None or AGREEMENT.problem(plan) else plan)
            for i, plan in enumerate(plans)
        ]
        decision = decide(screened, RULES, None, is_last=False)
        if decision.choice is not None:
            return plans[decision.choice]
    return None


def voted(voter: Voter, frame: int, plans: Sequence[Plan | None]) -> Plan | None:
    ballots = [ballot(replica, plan) for replica, plan in enumerate(plans)]
    answer = voter.vote(frame, ballots, "over", frame * PERIOD_NS)
    return None if answer.choice is None else plans[answer.choice]


def through(
    kind: str, seed: int, scenes: Sequence[Scene], golden: Sequence[Plan]
) -> dict[str, str]:
    """Return for each scheme the worst that a flip came to, of OUTCOMES."""
    singles, again = Hit(kind, seed), Hit(kind, seed)
    replica, voter = seed % 3, Voter(RULES)
    worst = dict.fromkeys(SCHEMES, 0)
    for frame, (scene, wanted) in enumerate(zip(scenes, golden, strict=True)):
        single = singles.plan(scene)
        screened = None if single is None or AGREEMENT.problem(single) else single
        plans = [wanted] * 3
        plans[replica] = single
        found = {
            "single": single,
            "screened": screened,
            "twice": twice(again, scene),
            "voted": voted(voter, frame, plans),
        }
        for scheme, plan in found.items():
            wrong = OUTCOMES.index("let through") if not right(plan, wanted) else 0
            worst[scheme] = max(worst[scheme], OUTCOMES.index("lost") if plan is None else wrong)
    return {scheme: OUTCOMES[place] for scheme, place in worst.items()}


def costs(scenes: Sequence[Scene]) -> dict[str, dict[str, int | None]]:
    """Return what a frame takes: one run, two, three, and the vote over three, CPU time in ns."""
    planners = [planning.Planner() for _ in range(3)]
    figures = {name: Distribution() for name in ("single", "twice", "voted", "vote_alone")}
    voter = Voter(RULES)
    for frame, scene in enumerate(scenes):
        marks = [time.process_time_ns()]
        plans = []
        for planner in planners:
            plans.append(planner.process(scene))
            marks.append(time.process_time_ns())
        AGREEMENT.distance(plans[0], plans[1])
        compared = time.process_time_ns()
        voted(voter, frame, plans)
        decided = time.process_time_ns()
        figures["single"].add(marks[1] - marks[0])
        figures["twice"].add(marks[2] - marks[0] + compared - marks[3])
        figures["voted"].add(marks[3] - marks[0] + decided - compared)
        figures["vote_alone"].add(decided - compared)
    return {name: dict(figure.summary()) for name, figure in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run record with tracks")
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=10, help="that each goes through")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    scenes = avrt.read_outputs(options.run, "track")
    planner = planning.Planner()
    golden = [planner.process(scene) for scene in scenes]
    counts = {kind: {s: {} for s in SCHEMES} for kind in KINDS}
    for seed in range(options.flips):
        kind = KINDS[seed % len(KINDS)]
        first = int(np.random.default_rng((seed, 1)).integers(len(scenes) - options.frames + 1))
        part = slice(first, first + options.frames)
        for scheme, what in through(kind, seed, scenes[part], golden[part]).items():
            known = counts[kind][scheme]
            known[what] = known.get(what, 0) + 1
    found = {"flips": counts, "cpu_ns": costs(scenes), "conditions": read_conditions()}
    print(json.dumps(found, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
