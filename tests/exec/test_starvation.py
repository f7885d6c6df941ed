"""When a host is said to have starved this process: the rules, row by row."""

import pytest

from avrt.device.samples import ResourceSample
from avrt.exec.starvation import LATE_NS_MAX, judge_starvation

SECOND = 1_000_000_000
CORES = 4
IDLE = {"process_cores": 0.4, "others_cores": 0.2, "steal_cores": 0.0}


def sample(since=0, at=1, **values):
    """Make a sample of four cores, times in seconds."""
    known = {"throttled_ns": 0, "memory_stall_ns": 0}
    return ResourceSample(
        since_ns=round(since * SECOND),
        at_ns=round(at * SECOND),
        cores=CORES,
        **(IDLE | known | values),
    )


def judge(*samples, start=0, end=1, late=()):
    return judge_starvation(samples, round(start * SECOND), round(end * SECOND), late)


@pytest.mark.parametrize(
    ("values", "late_ns", "verdict", "word"),
    [
        ({}, 0, "fed", "gave what was asked"),
        ({}, LATE_NS_MAX, "fed", "gave"),
        ({}, LATE_NS_MAX + 1, "held", "while the host had room"),
        ({"throttled_ns": SECOND // 100}, 0, "fed", "gave"),
        ({"throttled_ns": SECOND // 50}, 0, "starved", "quota stopped the process for 2%"),
        ({"throttled_ns": 3 * SECOND}, 0, "starved", "for 100% of the time"),
        ({"steal_cores": 0.2}, 0, "fed", "gave"),
        ({"steal_cores": 0.4}, 0, "starved", "hypervisor took 10%"),
        ({"memory_stall_ns": SECOND // 10}, 0, "fed", "gave"),
        ({"memory_stall_ns": SECOND // 5}, 0, "starved", "memory was waited for 20%"),
        ({"process_cores": 1.1, "others_cores": 2.0}, 0, "fed", "gave"),
        ({"process_cores": 1.0, "others_cores": 2.2}, 0, "starved", "others kept 55%"),
        ({"process_cores": 0.7, "others_cores": 2.2}, 0, "fed", "gave"),
        ({"process_cores": 3.0, "others_cores": 0.9}, 0, "starved", "22% of the cores busy"),
        ({"process_cores": 3.0, "others_cores": 0.7}, 0, "fed", "gave"),
        ({"process_cores": 3.9, "others_cores": 0.1}, LATE_NS_MAX + 1, "held", "this process"),
        ({"others_cores": 3.4}, LATE_NS_MAX + 1, "starved", "others"),
        ({"others_cores": None, "steal_cores": None, "throttled_ns": None,
          "memory_stall_ns": None}, 0, "fed", "gave"),
    ],
)  # fmt: skip
def test_the_rules(values, late_ns, verdict, word):
    found = judge(sample(**values), late=(0, late_ns))
    assert found.verdict == verdict
    assert word in found.told
    assert found.starved == bool(found.evidence) == (verdict == "starved")


def test_all_that_is_shown_is_told():
    found = judge(sample(steal_cores=1.0, others_cores=3.0))
    assert len(found.evidence) == 2


def test_samples_count_by_how_much_of_the_interval_they_cover():
    calm, busy = sample(0, 1), sample(1, 2, others_cores=4.0, process_cores=0.0)
    assert judge(calm, busy, start=0, end=1.2).verdict == "fed"
    assert judge(calm, busy, start=0.8, end=2).verdict == "starved"
    assert judge(calm, busy, start=1.5, end=1.6).verdict == "starved"


@pytest.mark.parametrize("samples", [(), (sample(5, 6),), (sample(0, 0.4),)])
def test_without_samples_nothing_is_known(samples):
    assert judge(*samples, late=(LATE_NS_MAX * 2,)).verdict == "unknown"
