"""A time-triggered table is right when every start finds its slot free and its job in time."""

from dataclasses import replace

from avrt.analysis.table import Row, table_faults, worst_response_ns
from avrt.analysis.tasks import Task

FAST = Task(name="fast", wcet_ns=2, period_ns=10, deadline_ns=5)
SLOW = Task(name="slow", wcet_ns=6, period_ns=20, deadline_ns=20)


def test_a_right_table_has_no_faults_and_shows_exact_responses():
    rows = [Row(FAST, (0, 10)), Row(SLOW, (2,))]
    assert table_faults(rows, 20) == []
    assert [worst_response_ns(row, 20) for row in rows] == [2, 8]


def test_two_jobs_on_one_slot_are_told():
    assert table_faults([Row(FAST, (0, 10)), Row(SLOW, (1,))], 20) == [
        "slow: no slot is free at 1 ns"
    ]
    assert table_faults([Row(FAST, (0, 10)), Row(SLOW, (1,))], 20, slots=2) == []


def test_what_runs_over_the_end_of_the_cycle_meets_the_next_one():
    patient = replace(SLOW, deadline_ns=30)
    (fault,) = table_faults([Row(FAST, (0, 10)), Row(patient, (15,))], 20)
    assert fault == "fast: no slot is free at 0 ns"


def test_a_start_too_late_or_missing_is_told():
    (fault,) = table_faults([Row(FAST, (0, 14))], 20)
    assert fault == "fast: done 6 ns after its release, due 5 ns"
    (fault,) = table_faults([Row(FAST, (0,))], 20)
    assert fault == "fast: the starts do not serve one release each"
    assert "not within the cycle" in table_faults([Row(FAST, (0, 20))], 20)[0]
