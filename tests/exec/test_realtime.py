"""Every measure for real time, granted and refused; what was taken is given back."""

import errno
import gc
import os
import subprocess
import sys
import threading

import pytest

from avrt.exec.realtime import (
    MCL_CURRENT,
    MCL_FUTURE,
    MCL_ONFAULT,
    RESET_ON_FORK,
    SWITCH_NS,
    locked_memory,
    passive_openmp,
    realtime_process,
    realtime_thread,
    thread_restored,
    tuned_allocator,
)
from avrt.exec.rights import COSTS, as_conditions
from avrt.exec.system import CAP_IPC_LOCK, CAP_SYS_NICE, SYSTEM, System

LOCK_ALL = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT
UNLIMITED = (-1, -1)


def asked(system, name):
    return [entry[1:] for entry in system.asked if entry[0] == name]


# The thread


def test_a_thread_gets_its_slack_cores_and_priority(make_system):
    system = make_system()
    rights = realtime_thread("dispatcher", priority=80, cpus=[3], system=system)
    assert [right.name for right in rights] == [
        "timer_slack:dispatcher", "affinity:dispatcher", "fifo:dispatcher",
    ]  # fmt: skip
    assert all(right.granted for right in rights)
    assert (system.slack_ns, system.allowed) == (1, {3})
    assert (system.policy, system.priority) == (os.SCHED_FIFO | RESET_ON_FORK, 80)


def test_a_priority_is_passed_on_only_when_asked_for(make_system):
    system = make_system()
    realtime_thread("worker", priority=50, inherited=True, system=system)
    assert system.policy == os.SCHED_FIFO


def test_what_is_not_asked_for_is_not_told(make_system):
    assert [right.name for right in realtime_thread("x", system=make_system())] == ["timer_slack:x"]


def test_a_refused_priority_names_the_limit_and_the_remedy(refusing):
    *_, right = realtime_thread("dispatcher", priority=80, system=refusing)
    assert not right.granted
    assert "operation not permitted (EPERM)" in right.told
    assert "rtprio is 0, 80 is asked for" in right.told
    assert "limits.d" in right.told
    assert "CAP_SYS_NICE" in right.told
    assert right.cost == COSTS["fifo"]


@pytest.mark.parametrize(
    "options",
    [{"capabilities": {CAP_SYS_NICE}}, {"limits": {"RLIMIT_RTPRIO": (99, 99)}}],
    ids=["capable", "within its limit"],
)
def test_a_refusal_in_spite_of_the_right_blames_the_control_group(make_system, options):
    system = make_system(refuses={"set_scheduling": errno.EPERM}, **options)
    *_, right = realtime_thread("dispatcher", priority=80, system=system)
    assert "cpu.rt_runtime_us" in right.told


def test_a_soft_limit_is_raised_where_the_hard_one_allows(make_system):
    system = make_system(limits={"RLIMIT_RTPRIO": (0, 90)})
    realtime_thread("dispatcher", priority=80, system=system)
    assert asked(system, "raise_limit") == [("RLIMIT_RTPRIO",)]


def test_a_limit_that_would_end_the_process_refuses_the_priority(make_system):
    system = make_system(limits={"RLIMIT_RTTIME": (200_000, 200_000)})
    *_, right = realtime_thread("dispatcher", priority=80, system=system)
    assert not right.granted
    assert "rttime is 200000 us" in right.told
    assert asked(system, "set_scheduling") == []


def test_such_a_limit_is_raised_where_it_may_be(make_system):
    system = make_system(limits={"RLIMIT_RTTIME": (200_000, -1)})
    *_, right = realtime_thread("dispatcher", priority=80, system=system)
    assert right.granted
    assert asked(system, "raise_limit") == [("RLIMIT_RTTIME",)]


def test_cores_outside_the_cpuset_are_refused(make_system):
    system = make_system(refuses={"set_cpus": errno.EINVAL})
    right = realtime_thread("dispatcher", cpus=[77], system=system)[1]
    assert not right.granted
    assert "core 77: invalid argument (EINVAL)" in right.told


def test_a_sandbox_may_refuse_the_timer_slack(make_system):
    system = make_system(refuses={"set_timer_slack": errno.EPERM})
    assert not realtime_thread("dispatcher", system=system)[0].granted


def test_a_thread_is_put_back(make_system):
    system = make_system()
    with thread_restored(system):
        realtime_thread("dispatcher", priority=80, cpus=[3], system=system)
    assert (system.policy, system.priority) == (os.SCHED_OTHER, 0)
    assert (system.slack_ns, system.allowed) == (50_000, {0, 1, 2, 3})


def test_without_privilege_the_flag_of_children_stays(make_system):
    system = make_system()
    plain = system.set_scheduling

    def keeps_flag(policy, priority):
        if system.policy & RESET_ON_FORK and not policy & RESET_ON_FORK:
            raise PermissionError(errno.EPERM, "no")
        plain(policy, priority)

    system.set_scheduling = keeps_flag
    with thread_restored(system):
        realtime_thread("dispatcher", priority=80, system=system)
    assert (system.policy, system.priority) == (os.SCHED_OTHER | RESET_ON_FORK, 0)


def test_nothing_is_put_back_where_nothing_can_be_asked(make_system):
    system = make_system(refuses={"scheduling": errno.ENOSYS})
    with thread_restored(system):
        pass
    assert asked(system, "set_timer_slack") == []


# Memory


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"capabilities": {CAP_IPC_LOCK}, "limits": {"RLIMIT_MEMLOCK": (8, 8)}}, LOCK_ALL),
        ({"limits": {"RLIMIT_MEMLOCK": UNLIMITED}}, LOCK_ALL),
        ({"limits": {"RLIMIT_MEMLOCK": (8, -1)}}, LOCK_ALL),
        ({"limits": {"RLIMIT_MEMLOCK": (1 << 30, 1 << 30)}}, MCL_CURRENT | MCL_ONFAULT),
    ],
    ids=["capable", "no limit", "a soft limit only", "a limit with room now"],
)
def test_memory_is_locked_as_far_as_later_allocations_are_safe(make_system, options, flags):
    system = make_system(status={"VmSize": "700000 kB", "VmLck": "0 kB"}, **options)
    with locked_memory(system) as right:
        assert right.granted
        assert asked(system, "lock_memory") == [(flags,)]
        assert asked(system, "unlock_memory") == []
    assert asked(system, "unlock_memory") == [()]


def test_memory_under_a_small_limit_is_not_even_asked_for(refusing):
    with locked_memory(refusing) as right:
        assert not right.granted
        assert "the limit memlock is 8 MiB, 684 MiB are mapped" in right.told
    assert asked(refusing, "lock_memory") == []
    assert asked(refusing, "unlock_memory") == []


def test_a_refused_lock_is_told_and_not_undone(make_system):
    system = make_system(
        limits={"RLIMIT_MEMLOCK": UNLIMITED}, refuses={"lock_memory": errno.ENOMEM}
    )
    with locked_memory(system) as right:
        assert not right.granted
        assert "ENOMEM" in right.told
    assert asked(system, "unlock_memory") == []


def test_memory_that_the_program_locked_stays_locked(make_system):
    system = make_system(status={"VmLck": "100 kB"})
    with locked_memory(system) as right:
        assert right.granted
    assert asked(system, "unlock_memory") == []


# Allocator and OpenMP


def test_the_allocator_takes_three_settings(make_system):
    system = make_system()
    assert tuned_allocator(system).granted
    values = {-3: 32 << 20, -1: 2**31 - 1, -2: 16 << 20}
    assert dict(asked(system, "set_allocator")) == values


@pytest.mark.parametrize(
    ("files", "library", "why"),
    [
        ({}, "musl", "musl has no such settings"),
        ({}, "", "this C library has no such settings"),
        ({"proc/self/maps": "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libtcmalloc.so.4\n"}, "glibc 2",
         "tcmalloc is loaded"),
    ],
)  # fmt: skip
def test_another_allocator_is_left_alone(make_system, files, library, why):
    system = make_system(files, library=library)
    right = tuned_allocator(system)
    assert not right.granted
    assert why in right.told
    assert asked(system, "set_allocator") == []


def test_an_allocator_that_takes_no_value_is_told(make_system):
    system = make_system()
    system.takes_allocator = False
    assert "did not take" in tuned_allocator(system).told


def test_openmp_is_passive_when_it_is_asked_before_its_library_is_loaded(make_system):
    variables = {}
    assert passive_openmp(make_system(), variables).granted
    assert variables == {"OMP_WAIT_POLICY": "PASSIVE"}
    assert passive_openmp(make_system(), variables).granted


def test_openmp_cannot_be_changed_once_it_is_loaded(make_system):
    maps = {"proc/self/maps": "7f00-7f01 r-xp 0 08:01 1 /torch/lib/libgomp-a34.so.1\n"}
    variables = {}
    right = passive_openmp(make_system(maps), variables)
    assert not right.granted
    assert "libgomp was loaded before" in right.told
    assert variables == {}


def test_what_the_user_set_for_openmp_stays(make_system):
    variables = {"OMP_WAIT_POLICY": "active"}
    assert not passive_openmp(make_system(), variables).granted
    assert variables == {"OMP_WAIT_POLICY": "active"}


# The process


@pytest.mark.usefixtures("settled")
def test_the_process_takes_everything_and_gives_it_back(make_system, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    system, before = make_system(capabilities={CAP_IPC_LOCK}), sys.getswitchinterval()
    with realtime_process(system=system) as rights:
        assert sys.getswitchinterval() == pytest.approx(SWITCH_NS / 1e9)
        assert gc.get_freeze_count()
    names = ["openmp", "allocator", "memory_lock", "switch_interval", "garbage"]
    assert [right.name for right in rights] == names
    assert all(right.granted for right in rights)
    assert sys.getswitchinterval() == before
    assert asked(system, "unlock_memory") == [()]


@pytest.mark.usefixtures("settled")
def test_a_run_without_any_right_is_told_so_and_runs(refusing, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    refusing.library = ""
    with realtime_process(system=refusing) as rights:
        rights.extend(realtime_thread("dispatcher", priority=80, system=refusing))
    refused = {right.name for right in rights if not right.granted}
    assert refused == {"openmp", "allocator", "memory_lock", "fifo:dispatcher"}
    assert all(right.told and right.cost for right in rights)
    conditions = as_conditions(rights)
    assert conditions["realtime.garbage"].startswith("granted: ")
    assert conditions["realtime.fifo:dispatcher"].startswith("refused: operation not permitted")


@pytest.mark.usefixtures("settled")
def test_memory_is_let_go_and_switching_put_back_when_the_run_fails(make_system):
    system, before = make_system(capabilities={CAP_IPC_LOCK}), sys.getswitchinterval()

    def fail():
        with realtime_process(system=system):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert asked(system, "unlock_memory") == [()]
    assert sys.getswitchinterval() == before


@pytest.mark.usefixtures("settled")
def test_memory_locks_can_be_left_out(make_system):
    with realtime_process(lock_memory=False, system=make_system()) as rights:
        assert "memory_lock" not in [right.name for right in rights]


# The system at hand

privileged = pytest.mark.skipif(
    not (SYSTEM.has_capability(CAP_SYS_NICE) and SYSTEM.has_capability(CAP_IPC_LOCK)),
    reason="needs CAP_SYS_NICE and CAP_IPC_LOCK",
)


def in_a_thread(work):
    """Run something in a thread of its own, which takes its settings with it."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_the_timer_slack_of_this_system_is_set_in_one_thread_only():
    def work():
        realtime_thread("x")
        return SYSTEM.timer_slack_ns()

    before = SYSTEM.timer_slack_ns()
    assert in_a_thread(work) == 1
    assert SYSTEM.timer_slack_ns() == before


def test_a_thread_of_this_system_stays_on_its_core():
    core = min(SYSTEM.cpus())

    def work():
        with thread_restored():
            right = realtime_thread("x", cpus=[core])[1]
            pinned = SYSTEM.cpus()
        return right, pinned, SYSTEM.cpus()

    right, pinned, after = in_a_thread(work)
    assert right.granted
    assert pinned == {core}
    assert after == SYSTEM.cpus()


@privileged
def test_this_system_grants_the_priority_to_one_thread_and_not_to_its_children():
    def work():
        with thread_restored():
            *_, right = realtime_thread("x", priority=10)
            mine, child = SYSTEM.scheduling(), in_a_thread(SYSTEM.scheduling)
        return right, mine, child, SYSTEM.scheduling()

    right, mine, child, after = in_a_thread(work)
    if not right.granted:
        pytest.skip(right.told)
    assert mine == (os.SCHED_FIFO | RESET_ON_FORK, 10)
    assert child == after == (os.SCHED_OTHER, 0)


@privileged
def test_this_system_locks_memory_and_lets_it_go():
    with locked_memory() as right:
        assert right.granted
        assert SYSTEM.status("VmLck") != "0 kB"
    assert SYSTEM.status("VmLck") == "0 kB"


WITHOUT_RIGHTS = """
import contextlib, os, resource
from avrt.exec.realtime import locked_memory, realtime_thread
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
with contextlib.suppress(PermissionError):  # who may not become nobody has no rights to drop
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
slack, *_, fifo = realtime_thread("x", priority=10)
with locked_memory() as lock:
    room = bytearray(32 << 20)
print(slack.granted, fifo.granted, fifo.told)
print(lock.granted, lock.told)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop rights")
def test_a_process_without_rights_is_refused_and_goes_on():
    ended = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", WITHOUT_RIGHTS], capture_output=True, text=True, check=True
    )
    thread, memory = ended.stdout.splitlines()
    assert thread.startswith("True False ")
    assert "rtprio is 0" in thread
    assert memory.startswith("False ")
    assert "memlock is 1 MiB" in memory


def test_another_system_has_none_of_it(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    system = System(tmp_path)
    with thread_restored(system):
        rights = realtime_thread("x", priority=80, cpus=[0], system=system)
    assert not any(right.granted for right in rights)
    assert "only linux has it (ENOSYS)" in rights[0].told


def test_kernel_files_of_this_process_are_read():
    assert SYSTEM.virtual_bytes() > 1 << 20
    assert SYSTEM.limit("RLIMIT_NOFILE")[0] > 0
    assert SYSTEM.limit("RLIMIT_NONSENSE") is None
    assert SYSTEM.read("proc/nothing/here") is None
    assert System(root=SYSTEM.root / "nowhere").virtual_bytes() == 0
