"""No report from the field is forgotten: each has a test, or a reason why it is not due yet."""

from __future__ import annotations

import re
from importlib import import_module, util

import pytest

from cases import field

COUNT = 80

RUN_BY = {
    "test_field_logs": [f"LOG-{number:02}" for number in range(1, 24, 2)],
    "test_field_clocks": [f"TIM-{number:02}" for number in range(1, 16, 2)],
    "test_field_sync": [f"SYN-{number:02}" for number in range(1, 8, 2)],
    "test_field_clouds": [f"PCL-{number:02}" for number in range(1, 18, 2)],
    "test_field_images": [f"IMG-{number:02}" for number in range(1, 14, 2)],
    "test_field_transforms": [f"TF-{number:02}" for number in range(1, 8, 2)],
    "test_field_tracking": [f"TRK-{number:02}" for number in range(1, 18, 2)],
    "test_field_planning": [f"PLN-{number:02}" for number in range(1, 6, 2)],
}
"""Module to the reports that its tests run; the names or docstrings of the tests have the ids."""

COVERED = {
    "test_field_scheduling": {
        "SCH-01": "test_a_period_of_zero_is_refused_with_task_and_key",
        "SCH-03": "test_harmonic_rates_repeat_after_their_least_common_multiple",
        "SCH-05": "test_a_processor_loaded_to_exactly_one_misses_nothing",
        "SCH-07": "test_equals_run_in_the_order_of_the_file_and_never_preempt",
        "SCH-09": "test_jobs_of_a_task_keep_their_order_beyond_its_period",
        "SCH-11": "test_a_late_driver_shifts_no_release",
        "SCH-13": "test_a_starved_task_is_missed_at_its_deadlines",
        "SCH-15": "test_a_late_start_hides_no_miss",
    },
    "test_field_devices": {
        "GPU-01": "test_memory_freed_while_a_side_stream_copies_it_stays_right",
        "GPU-03": "test_no_result_is_read_before_its_copy_ended",
        "GPU-07": "test_what_ran_out_of_memory_is_let_go_before_the_next_try",
        "GPU-09": "test_threads_that_compute_are_no_more_than_were_given",
        "GPU-13": "test_denormal_numbers_are_zero_in_the_thread_of_every_stage",
    },
    "test_field_faults": {
        "FT-01": "test_votes_over_what_is_no_number",
        "FT-03": "test_a_replica_without_evidence_is_never_selected",
        "FT-05": "test_a_device_that_is_poisoned_is_left_and_not_tried_again",
    },
    "test_field_live": {
        "NOD-01": "test_sigint_leaves_a_whole_record",
        "NOD-03": "test_ctrl_c_ends_a_run_in_which_nothing_happens",
        "NOD-05": "test_a_full_disk_ends_the_record_and_not_the_run",
        "NOD-07": "test_no_exception_of_a_stage_is_lost",
        "NOD-09": "test_timers_end_with_the_log",
    },
}
"""Module to its reports, each with the test that shows the right behaviour."""

NOT_DUE = {
    "GPU-05": "no stage runs as a captured graph yet, so nothing can be captured wrongly",
    "GPU-11": "a stage cannot declare shapes to warm up yet: the first job alone is kept apart",
    "FT-07": "no stage has a process of its own yet: 'partition' is refused",
}


def all_reports():
    """Return the ids of the collection; skips where it is absent."""
    readme = field.FOLDER / "README.md"
    if not readme.is_file():
        pytest.skip(f"the field reports are not here: {field.FOLDER}")
    text = readme.read_text(encoding="utf-8")
    return re.findall(r"^### ([A-Z]+-\d+)\b", text, flags=re.MULTILINE)


def test_every_report_is_in_exactly_one_list():
    listed = [*NOT_DUE]
    for reports in (*RUN_BY.values(), *COVERED.values()):
        listed += reports
    assert len(listed) == len(set(listed)) == COUNT
    assert sorted(listed) == sorted(all_reports())


@pytest.mark.parametrize("name", [*RUN_BY, *COVERED])
def test_a_module_runs_the_reports_that_are_listed_here(name):
    if util.find_spec(f"cases.{name}") is None:
        pytest.skip(f"{name} is not here yet")
    reports = import_module(f"cases.{name}").REPORTS
    assert sorted(reports) == sorted((RUN_BY | COVERED)[name])


@pytest.mark.parametrize("name", COVERED)
def test_each_report_has_the_test_that_is_named_here(name):
    module = import_module(f"cases.{name}")
    missing = [test for test in COVERED[name].values() if not callable(getattr(module, test, None))]
    assert missing == []
