"""The kernel contract of votes: by example, and one property for all scenarios."""

import pytest
from builder import Bench, device, sampled, stage, timer
from hypothesis import given
from tracing import World, drive, restored_half_way

from avrt.errors import KernelError
from avrt.model.commands import Dispatch, Publish, Reclaim, Record, Vote
from avrt.model.events import Completed, Failed, Voted
from avrt.model.records import ChainRecord, JobRecord, VoteRecord
from avrt.model.spec import ChainSpec, RedundancySpec, TableRow, TableSpec
from pipelines import Limits, examples, scenarios

TWINS = RedundancySpec(copies=2)
TRIPLETS = RedundancySpec(copies=3, decide_ns=20)


def voted_on(*more, redundancy=TRIPLETS, slots=3, **keys):
    """Return a bench with one redundant stage of 100 ns deadline, which has been released at 0."""
    keys = {"deadline_ns": 100, **keys}
    bench = Bench(
        stage("see", "lidar", redundancy=redundancy, **keys), *more, devices=(device(slots=slots),)
    )
    bench.arrive(0, "lidar")
    return bench


def questions(bench):
    """Return what the voter was asked in the last call: jobs and when."""
    return [(vote.jobs, vote.when) for vote in bench.commands(Vote)]


def all_votes(bench, when):
    return [c for c in bench.all if isinstance(c, Vote) and c.when == when]


def test_a_vote_is_asked_for_as_soon_as_two_outputs_are_there_and_once_all_jobs_have_ended():
    bench = voted_on()
    assert bench.dispatched() == ["see.0", "see.1", "see.2"]
    bench.complete(2, 2)
    assert questions(bench) == []
    bench.complete(3, 0)
    assert bench.commands(Vote) == [Vote(0, "see", 0, 3, (0, 2), "early")]
    bench.at(4, Voted(0, "majority", 0))
    assert bench.commands(Publish) == [Publish(0, 0, 4)]
    assert bench.records(VoteRecord) == [VoteRecord(0, "see", 4, "majority", accepted=True)]
    bench.complete(5, 1)
    assert questions(bench) == [((0, 1, 2), "over")]
    bench.at(6, Voted(0, "", None))
    assert bench.commands(Publish) == []
    assert bench.records(VoteRecord) == []


def test_of_five_copies_three_outputs_are_waited_for():
    bench = voted_on(redundancy=RedundancySpec(copies=5), slots=5)
    bench.complete(2, 0, 3)
    assert questions(bench) == []
    bench.complete(3, 4)
    assert bench.commands(Vote) == [Vote(0, "see", 0, 5, (0, 3, 4), "early")]


def test_with_two_copies_all_jobs_have_ended_when_two_outputs_are_there():
    bench = voted_on(redundancy=TWINS)
    bench.complete(2, 0)
    bench.complete(3, 1)
    assert questions(bench) == [((0, 1), "over")]


def test_an_early_question_may_stay_undecided_and_is_asked_again_with_the_next_output():
    bench = voted_on()
    bench.complete(2, 0, 1)
    bench.at(3, Voted(0, "open", None))
    assert bench.published() == []
    assert bench.records(VoteRecord) == []
    bench.complete(4, 2)
    assert questions(bench) == [((0, 1, 2), "over")]
    bench.at(5, Voted(0, "majority", 2))
    assert bench.published() == [2]


def test_at_the_last_time_to_decide_in_what_is_there_is_decided_over():
    bench = voted_on()
    bench.complete(2, 1)
    assert bench.kernel.next_wakeup_ns == 80
    bench.at(80)
    assert questions(bench) == [((1,), "deadline")]
    bench.at(81, Voted(0, "single", 1, blamed=(0, 2)))
    assert bench.commands(Publish) == [Publish(0, 1, 81)]
    assert bench.records(VoteRecord) == [
        VoteRecord(0, "see", 81, "single", blamed=("see.0", "see.2"), accepted=True)
    ]


def test_what_comes_after_the_decision_changes_nothing_and_is_kept_until_the_vote_is_over():
    bench = voted_on()
    bench.complete(2, 0)
    bench.at(80)
    bench.at(80, Voted(0, "none", None))
    bench.complete(90, 1)
    bench.complete(91, 2)
    assert questions(bench) == [((0, 1, 2), "over")]
    assert not {0, 1, 2}.intersection(bench.reclaimed())
    with pytest.raises(KernelError, match="this vote is decided"):
        bench.at(92, Voted(0, "majority", 1))
    bench.at(92, Voted(0, "", None))
    assert bench.published() == []
    assert bench.reclaimed() == [0, 1, 2]


def test_the_selected_output_is_not_reclaimed_before_it_is_read():
    bench = voted_on(stage("plan", "see"))
    bench.complete(2, 0, 1)
    bench.at(2, Voted(0, "majority", 1))
    plan = bench.dispatch()
    assert plan.inputs == (1,)
    bench.complete(3, 2)
    bench.at(3, Voted(0, "", None))
    assert bench.reclaimed() == [0, 2]
    bench.complete(4, plan.job)
    assert 1 in bench.reclaimed()


def test_one_question_is_open_at_a_time():
    bench = voted_on()
    bench.complete(2, 0, 1)
    bench.complete(3, 2)
    assert questions(bench) == []
    bench.at(80)
    assert questions(bench) == []
    bench.at(81, Voted(0, "open", None))
    assert questions(bench) == [((0, 1, 2), "over")]


def test_the_others_are_told_who_was_wrong_when_the_vote_is_over():
    bench = voted_on()
    bench.complete(2, 0, 1)
    bench.at(2, Voted(0, "majority", 0))
    bench.complete(9, 2)
    bench.at(9, Voted(0, "", None, blamed=(2,)))
    assert bench.records(VoteRecord) == [VoteRecord(0, "see", 9, "", blamed=("see.2",))]


def test_a_decision_supersedes_what_is_undecided_of_older_activations():
    bench = voted_on()
    bench.complete(2, 0, 1)
    bench.at(2, Voted(0, "open", None))
    bench.arrive(10, "lidar")
    assert bench.dispatched() == ["see.0", "see.1"]
    bench.complete(12, 3, 4)
    bench.at(12, Voted(1, "majority", 3))
    assert bench.published() == [3]
    assert VoteRecord(0, "see", 12, "superseded") in bench.records(VoteRecord)
    bench.complete(20, 2)
    assert questions(bench) == [((0, 1, 2), "over")]
    bench.at(20, Voted(0, "majority", 0))
    assert bench.published() == []
    assert {0, 1, 2} <= set(bench.reclaimed())


def test_published_at_their_deadlines_older_activations_are_decided_for_themselves():
    bench = voted_on(publish="at_deadline")
    bench.complete(2, 0, 1)
    bench.at(2, Voted(0, "open", None))
    bench.arrive(10, "lidar")
    bench.complete(12, 3, 4)
    bench.at(12, Voted(1, "majority", 3))
    bench.complete(20, 2)
    bench.at(20, Voted(0, "majority", 0))
    bench.at(100)
    assert bench.published() == [0]
    bench.at(110)
    assert bench.published() == [3]


def test_what_is_held_supersedes_at_deadlines_too():
    bench = voted_on(redundancy=TWINS, publish="at_deadline", slots=4)
    bench.complete(2, 0, 1)
    bench.at(2, Voted(0, "majority", 0))
    bench.arrive(10, "lidar")
    bench.complete(12, 2)
    bench.at(20, Failed(3, "DataFault"))
    assert questions(bench) == [((2,), "over")]
    bench.arrive(21, "lidar")
    bench.at(22, Failed(4, "DataFault"), Failed(5, "DataFault"))
    bench.at(22, Voted(2, "none", 70, held=True))
    assert VoteRecord(1, "see", 22, "superseded") in bench.records(VoteRecord)
    bench.at(22, Voted(1, "single", 2))
    bench.at(121)
    assert 70 in [c.buffer for c in bench.all if isinstance(c, Publish)]
    assert 2 not in [c.buffer for c in bench.all if isinstance(c, Publish)]


def test_at_deadlines_nothing_is_published_after_something_newer():
    bench = voted_on(publish="at_deadline")
    bench.complete(2, 0, 1)
    bench.at(2, Voted(0, "open", None))
    bench.arrive(10, "lidar")
    bench.complete(12, 3, 4)
    bench.at(12, Voted(1, "majority", 3))
    bench.at(120)  # nobody woke the kernel at 80, 100 or 110
    assert bench.published() == [3]
    assert questions(bench) == [((0, 1), "deadline")]
    bench.at(120, Voted(0, "majority", 0))
    assert bench.published() == []


def test_what_is_accepted_in_one_call_may_be_held_in_the_same_call():
    bench = voted_on(redundancy=TWINS)
    bench.arrive(1, "lidar")
    bench.complete(2, 0, 1)
    bench.arrive(2, "lidar")
    bench.at(2, Voted(0, "majority", 0))
    bench.complete(3, 2, 3)
    assert questions(bench) == [((2, 3), "over")]
    fresh = voted_on(redundancy=TWINS, slots=4)
    fresh.complete(2, 0, 1)
    fresh.arrive(2, "lidar")
    fresh.complete(2, 2, 3)
    assert [vote.activation for vote in fresh.commands(Vote)] == [1]
    fresh.at(2, Voted(0, "majority", 0), Voted(1, "hold", 70, held=True))
    assert fresh.published() == [0, 70]


def test_an_activation_that_was_asked_about_is_over_even_if_no_job_of_it_began():
    bench = voted_on(timer("hog", offset_ns=0, deadline_ns=5), slots=1)
    bench.at(80)
    assert questions(bench) == [((), "deadline")]
    bench.at(80, Voted(0, "none", None))
    for number in range(5):
        bench.arrive(81 + number, "lidar")
    assert [(vote.index, vote.jobs) for vote in all_votes(bench, "over")] == [(0, ())]


def test_jobs_without_a_result_are_not_voted_on_and_without_any_the_voter_is_asked_all_the_same():
    bench = voted_on(redundancy=TWINS)
    bench.complete(2, 1)
    bench.at(3, Failed(0, "DataFault"))
    assert questions(bench) == [((1,), "over")]
    bench.at(3, Voted(0, "single", 1))
    bench.arrive(10, "lidar")
    bench.at(12, Failed(2, "DataFault"), Failed(3, "DataFault"))
    assert questions(bench) == [((), "over")]


def test_an_activation_of_which_no_job_began_is_not_voted_on():
    bench = voted_on(timer("hog", offset_ns=0, deadline_ns=5), slots=1, on_miss="abort")
    assert bench.dispatched() == ["hog"]
    bench.at(100)
    assert [r.outcome for r in bench.records(JobRecord)] == ["aborted"] * 3
    assert questions(bench) == []


def test_a_merge_of_outputs_is_a_new_message():
    bench = voted_on(stage("plan", "see"))
    bench.complete(2, 0, 1, 2)
    bench.at(3, Voted(0, "merged", 70))
    assert bench.commands(Publish) == [Publish(0, 70, 3)]
    assert bench.reclaimed() == [0, 1, 2]
    assert bench.dispatch().inputs == (70,)


def test_an_output_that_is_held_is_as_old_as_it_was():
    chain = ChainSpec(name="path", path=("lidar", "see", "plan"), age_ns=1000)
    bench = Bench(
        stage("see", "lidar", redundancy=TWINS, deadline_ns=100),
        stage("plan", "see"),
        devices=(device(slots=3),),
        chains=(chain,),
    )
    bench.arrive(0, "lidar")
    bench.complete(2, 0, 1)
    bench.at(2, Voted(0, "majority", 0))
    bench.complete(3, 2)
    bench.arrive(50, "lidar")
    bench.complete(60, 3, 4)
    bench.at(60, Voted(2, "hold", 71, held=True))
    assert bench.commands(Publish) == [Publish(2, 71, 60)]
    assert bench.records(VoteRecord) == [VoteRecord(2, "see", 60, "hold", held=True)]
    plan = bench.dispatch()
    assert plan.inputs == (71,)
    bench.complete(61, plan.job)
    bench.at(2000)
    ages = [r.age_ns for r in bench.all_records(ChainRecord) if r.age_ns is not None]
    assert 61 in ages


def test_a_decision_before_the_deadline_waits_for_it_where_the_stage_publishes_then():
    bench = voted_on(redundancy=TWINS, publish="at_deadline")
    bench.complete(2, 0, 1)
    bench.at(4, Voted(0, "majority", 0))
    assert bench.published() == []
    bench.at(100)
    assert bench.published() == [0]


def test_under_a_table_nothing_is_asked_early():
    rows = (TableRow(task=f"see.{copy}", starts_ns=(10 * copy,)) for copy in range(3))
    bench = Bench(
        timer("see", 100, redundancy=TRIPLETS, deadline_ns=90, wcet_ns=5),
        policy="table",
        table=TableSpec(cycle_ns=100, rows=tuple(rows)),
    )
    for job in range(3):
        bench.at(10 * job)
        bench.complete(10 * job + 5, job)
    assert questions(bench) == [((0, 1, 2), "over")]


def is_superseded(record):
    return isinstance(record, VoteRecord) and record.verdict == "superseded"


def is_redundant(trace, job):
    return trace.stage_of(job.task).redundancy is not None


@examples(40)
@given(scenarios(Limits(copies=(2, 3), stages_max=4)))
def test_each_vote_is_decided_once_by_what_was_there_and_the_selected_output_is_published(scenario):
    trace = drive(scenario)
    jobs = trace.jobs()
    open_since, decided, asked, over, outputs = {}, {}, set(), set(), set()
    for call in trace.calls:
        for event in call.events:
            if isinstance(event, Completed):
                outputs.add(event.job)
            if isinstance(event, Voted):
                question = open_since.pop(event.activation)
                if event.activation not in decided and (
                    event.buffer is not None or question.when != "early"
                ):
                    decided[event.activation] = event.buffer
                if question.when == "over":
                    over.add(event.activation)
        for command in call.commands:
            if isinstance(command, Vote):
                assert command.activation not in open_since
                assert command.activation not in over
                assert set(command.jobs) <= outputs
                assert all(jobs[job].activation == command.activation for job in command.jobs)
                assert command.when != "early" or len(command.jobs) >= 2
                open_since[command.activation] = command
                asked.add(command.activation)
            if isinstance(command, Record) and is_superseded(command.record):
                decided.setdefault(command.record.activation, None)
    published = {c.activation: c.buffer for _, c in trace.commands if isinstance(c, Publish)}
    assert published == {a: b for a, b in decided.items() if b is not None}
    began = {c.job for _, c in trace.commands if isinstance(c, Dispatch)}
    assert over == asked >= {jobs[j].activation for j in began if is_redundant(trace, jobs[j])}
    made = {b for b in outputs if jobs[b].outcome in {"met", "late"}}
    freed = {c.buffer for _, c in trace.commands if isinstance(c, Reclaim)}
    assert made - set(published.values()) <= freed


# Spare copies


SPARE = RedundancySpec(copies=3, spare=1)


def test_a_spare_copy_does_not_run_where_the_others_agree():
    bench = voted_on(redundancy=SPARE)
    assert bench.dispatched() == ["see.0", "see.1"]
    bench.complete(3, 0, 1)
    assert questions(bench) == [((0, 1), "early")]
    bench.at(4, Voted(0, "majority_of_two", 0))
    assert questions(bench) == [((0, 1), "over")]
    bench.at(5, Voted(0, "", None))
    bench.arrive(10, "lidar")
    assert bench.dispatched() == ["see.0", "see.1"]


def test_a_spare_copy_runs_where_the_others_disagree_and_reads_what_they_read():
    bench = voted_on(redundancy=SPARE)
    read = bench.commands(Dispatch)[0].inputs
    bench.complete(3, 0, 1)
    bench.at(4, Voted(0, "open", None))
    assert bench.dispatched() == ["see.2"]
    spare = bench.dispatch()
    assert (spare.inputs, spare.index, spare.release_ns, spare.due_ns) == (read, 0, 0, 100)
    assert bench.reclaimed() == []
    bench.complete(6, spare.job)
    assert questions(bench) == [((0, 1, 2), "over")]
    bench.at(7, Voted(0, "majority", 1))
    assert bench.published() == [1]
    assert sorted(bench.reclaimed()) == [-100, 0, 1, 2]


def test_a_spare_copy_runs_as_soon_as_the_others_can_be_too_few():
    bench = voted_on(redundancy=SPARE)
    bench.at(2, Failed(0, "exception"))
    assert bench.dispatched() == ["see.2"]


def test_a_spare_copy_that_could_not_be_in_time_does_not_run():
    bench = voted_on(redundancy=SPARE, wcet_ns=40)
    bench.complete(60, 0)
    bench.complete(61, 1)
    assert bench.dispatched() == []
    assert questions(bench) == [((0, 1), "over")]


def test_jobs_of_a_spare_copy_have_the_numbers_of_their_releases():
    bench = voted_on(redundancy=SPARE)
    for round_ns in (0, 20):
        if round_ns:
            bench.arrive(round_ns, "lidar")
        first, second = (c.job for c in bench.commands(Dispatch))
        if not round_ns:
            bench.complete(round_ns + 3, first, second)
            bench.at(round_ns + 4, Voted(0, "majority_of_two", first))
            bench.at(round_ns + 5, Voted(0, "", None))
    bench.at(22, Failed(first, "exception"))
    assert (bench.dispatch().task, bench.dispatch().index) == ("see.2", 1)


def test_what_was_skipped_at_its_release_needs_no_spare_copy():
    late = sampled("radar", max_age_ns=1)
    bench = Bench(stage("see", "lidar", late, redundancy=SPARE, deadline_ns=100))
    bench.arrive(0, "lidar")
    assert [outcome for _, outcome, *_ in bench.outcomes()] == ["skipped", "skipped"]
    assert bench.kernel._voting.polls == {}


SPARES = Limits(copies=(3,), spare=True, stages_max=3)


@examples(30)
@given(scenarios(SPARES))
def test_spare_copies_run_only_of_what_the_others_did_not_decide_and_every_job_ends(scenario):
    world = World(scenario)
    trace = world.run()
    records = trace.records(JobRecord)
    assert sorted(r.job for r in records) == list(range(len(records)))
    assert trace.working == ()
    assert not any(world.kernel._state.underway.values())
    assert world.kernel._voting.polls == {}
    spares = {s.name: s.redundancy for s in trace.spec.stages if s.redundancy is not None}
    decided = set()
    for call in trace.calls:
        decided |= {
            event.activation
            for event in call.events
            if isinstance(event, Voted) and event.buffer is not None
        }
        for command in call.commands:
            if isinstance(command, Dispatch):
                job = trace.jobs()[command.job]
                copy = int(job.task.rpartition(".")[2])
                if spares[job.stage].spare and copy == 2 and job.arrival_ns == call.at_ns:
                    assert job.activation not in decided
    for task in trace.task_names():
        indices = [r.index for r in sorted(records, key=lambda r: r.job) if r.task == task]
        assert indices == sorted(set(indices))


@examples(20)
@given(scenarios(SPARES))
def test_a_kernel_restored_at_any_call_goes_on_alike_with_spare_copies(scenario):
    trace = drive(scenario)
    assert [call.commands for call in trace.calls] == restored_half_way(trace)
