"""Cause-effect chains: maximum reaction time and data age, whole and reduced.

Every task of a chain is a timer stage that samples the one before. Logical execution time reads
at the release and publishes at the deadline; implicit communication reads at the start and
publishes at completion. What is published at the instant of a read is seen by it. The reduced
values (Guenzel et al. 2023) leave the wait of the external change, or of the next output, away.
Under logical execution time any policy that meets the deadlines gives the same values.
"""

from __future__ import annotations

from itertools import pairwise

from avrt.drivers.simulate import simulate
from avrt.model.graph import check
from avrt.model.records import ChainRecord
from avrt.model.spec import ChainSpec, InputSpec, PipelineSpec
from cases.reference import exact
from cases.schedule import (
    Machine,
    Schedule,
    device_of,
    hyperperiod,
    periodic,
    stage_of,
    tasks_of,
)

LOGICAL = [
    "chain-let-3-sync",
    "chain-let-3-desc",
    "chain-let-3-nonharm",
    "chain-let-cam-lidar-plan",
    "chain-let-offset",
]
IMPLICIT = [
    "chain-impl-3-rm",
    "chain-impl-3-rev",
    "chain-impl-nonharm",
    "chain-impl-perception",
]


def chained(case, publish):
    """Schedule a chain for a hyperperiod once it has settled."""
    tasks, path = tasks_of(case), case["chain"]
    before = dict(zip(path[1:], path, strict=False))
    latency = 2 * sum(tasks[index].period for index in path)
    until = hyperperiod(tasks) + 2 * latency
    names = [f"t{index}" for index in range(len(tasks))]
    machine = Machine(policy="edf" if publish == "at_deadline" else "fp")
    stages = [
        stage_of(
            task,
            machine,
            name,
            period_ns=task.period,
            offset_ns=task.offset,
            publish=publish,
            inputs=(optional(f"t{before[index]}"),) if index in before else (),
        )
        for index, (task, name) in enumerate(zip(tasks, names, strict=True))
    ]
    chain = ChainSpec(name="chain", path=tuple(f"t{index}" for index in path))
    spec = PipelineSpec(
        name="case",
        policy=machine.policy,
        devices=(device_of(machine),),
        stages=tuple(stages),
        chains=(chain,),
    )
    check(spec)
    schedule = Schedule(simulate(spec, until_ns=until), names)
    assert schedule.first_missed_deadline is None
    records = [r for r in schedule.simulation.records if isinstance(r, ChainRecord)]
    settled = [record for record in records if latency <= record.at_ns <= until]
    heads = [
        job.start_ns if publish == "asap" else job.release_ns for job in schedule.jobs[path[0]]
    ]
    return settled, [read for read in heads if read >= latency]


def optional(producer):
    """A sampled input that is absent until its producer has published for the first time."""
    return InputSpec(name="in", source=producer, optional=True)


def values_of(records, reads_ns):
    """The four values that the published outputs of a chain show."""
    reduced = []
    for read_ns in reads_ns:
        known = [r.at_ns for r in records if r.at_ns - r.path_ns >= read_ns]
        if known:
            reduced.append(known[0] - read_ns)
    return {
        "MRT": max(r.reaction_ns for r in records if r.reaction_ns is not None),
        "MDA": max(r.age_ns for r in records),
        "MRRT": max(reduced),
        "MRDA": max(r.path_ns for r in records),
    }


@exact(*LOGICAL)
def test_a_chain_under_logical_execution_time(case):
    assert values_of(*chained(case, "at_deadline")) == case["expected"]


@exact(*IMPLICIT)
def test_a_chain_under_implicit_communication(case):
    assert values_of(*chained(case, "asap")) == case["expected"]


@exact("chain-impl-single")
def test_a_chain_of_one_task_reads_at_its_start_and_publishes_at_its_end(case):
    """A declared chain has two stages at least; one task's job records say the same."""
    tasks = tasks_of(case)
    jobs = periodic(tasks, Machine(), 4 * hyperperiod(tasks)).jobs[case["chain"][0]]
    whole = max(j.end_ns - i.start_ns for i, j in pairwise(jobs))
    reduced = max(job.end_ns - job.start_ns for job in jobs)
    assert {"MRT": whole, "MDA": whole, "MRRT": reduced, "MRDA": reduced} == case["expected"]
