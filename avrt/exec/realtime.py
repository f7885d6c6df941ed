"""Set this process and its threads up for real time as far as the system lets it, and put it back.

Every measure is asked for on its own. What is refused is told with its reason and never raised:
a run without privileges is a run with worse tails, and says so in its conditions.

* Memory is locked as it is touched (MCL_ONFAULT). Without that flag every thread's whole stack and
  every library's whole file come in at once: with torch and ten threads 706 MiB, not 224.
  What comes later is locked only where no limit is in force: under a finite RLIMIT_MEMLOCK the
  kernel fails every later mapping that would pass the limit, in the middle of a job.
* Every thread that takes the interpreter needs SCHED_FIFO, not the dispatcher alone: an ordinary
  one that holds it and is put aside for another process keeps the dispatcher waiting. Beside two
  busy processes and a worker that computes in Python half of the time, the dispatcher at 80 woke
  3.2 to 7.4 ms late at p99 (4.9 to 6.5 ms with no priority at all), and 0.21 to 0.23 ms with the
  worker at 50 as well (2 cores of an Intel Xeon, 120 wake-ups each, twice).
* SCHED_FIFO does not pass on to threads and processes that the thread starts, unless asked for.
* The switch interval is 500 us. Less is better for one thread that waits behind one that computes:
  a hand-over beside a busy Python thread took 6.3 ms at p50 with the default of 5 ms, 0.63 ms with
  500 us, 0.20 ms with 100 us. More is better for eight stages that all want the interpreter, which
  is what a pipeline is: of 1,700 jobs in 8 s of the built-in drive 314 were met with 100 us, 593
  with 500 us, 582 with 1 ms and 548 with 5 ms, the driver 3.2, 2.8, 4.3 and 9.4 ms late at p99
  (2 cores of an Intel Xeon at 2 GHz, on which that drive is too much for one process).
* Whoever delivers messages goes before the stages: a reader below them fell a second behind.
* The allocator keeps what it is given; it cannot be asked what it did before, so that stays.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from avrt.exec.process import frozen_garbage, quick_switching
from avrt.exec.rights import Right, granted, in_words, refused
from avrt.exec.system import CAP_IPC_LOCK, CAP_SYS_NICE, SYSTEM, System
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping

SWITCH_NS = 500_000
SLACK_NS = 1
DISPATCHER_PRIORITY = 80  # above the threads of interrupts (50) on a PREEMPT_RT kernel
FEED_PRIORITY = 60  # sensors: late data delays everything that follows
WORKER_PRIORITY = 40  # below them: a stage computes for long
OTHER_PRIORITY = 10  # recorder, table, monitor: whoever may hold the interpreter
SCHED_FIFO, RESET_ON_FORK = 1, 0x40000000  # not in `os` where the system is not Linux
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
UNLIMITED = -1
ALLOCATOR_SETTINGS = (
    (-3, 32 << 20),  # M_MMAP_THRESHOLD: as high as glibc lets it be
    (-1, 2**31 - 1),  # M_TRIM_THRESHOLD: give nothing back
    (-2, 16 << 20),  # M_TOP_PAD: grow in steps of 16 MiB
)
LIMITS_FILE = "/etc/security/limits.d/avrt.conf"


@contextmanager
def realtime_process(
    *, lock_memory: bool = True, switch_ns: int = SWITCH_NS, system: System = SYSTEM
) -> Iterator[list[Right]]:
    """Take what holds for the whole process; give it back at the end. Yields what was got.

    Enter it in the main thread, when everything is loaded and warm. Memory locks pass to no child.
    """
    with ExitStack() as stack:
        rights = [passive_openmp(system), tuned_allocator(system)]
        if lock_memory:
            rights.append(stack.enter_context(locked_memory(system)))
        stack.enter_context(quick_switching(switch_ns / 1e9))
        rights.append(granted("switch_interval", format_ns(switch_ns)))
        stack.enter_context(frozen_garbage())
        rights.append(granted("garbage", "what is alive is kept from the collector"))
        yield rights


def realtime_thread(
    name: str,
    *,
    priority: int = 0,
    cpus: Iterable[int] = (),
    inherited: bool = False,
    system: System = SYSTEM,
) -> list[Right]:
    """Set up the calling thread; return what was got.

    Args:
        name: whose thread it is, for what is told.
        priority: of SCHED_FIFO, 1 to 99; 0 asks for none.
        cpus: where it shall run; none given: where it may run now. Threads that it starts run
            there too: a stage with two threads an operation needs two.
        inherited: whether threads that it starts (those of OpenMP) get the priority too.
        system: the system to ask.
    """
    rights = [_slack(name, system)]
    if cpus:
        rights.append(_affinity(name, frozenset(cpus), system))
    if priority:
        rights.append(_fifo(name, priority, inherited=inherited, system=system))
    return rights


@contextmanager
def thread_restored(system: System = SYSTEM) -> Iterator[None]:
    """Put the calling thread's scheduling, cores and timer slack back at the end."""
    try:
        policy, priority = system.scheduling()
        cpus, slack_ns = system.cpus(), system.timer_slack_ns()
    except OSError:
        yield  # what cannot be asked cannot have been changed
        return
    try:
        yield
    finally:
        _put_back(policy, priority, system)
        if system.cpus() != cpus:
            system.set_cpus(cpus)
        if system.timer_slack_ns() != slack_ns:
            system.set_timer_slack(slack_ns)


def _put_back(policy: int, priority: int, system: System) -> None:
    if system.scheduling() == (policy, priority):
        return
    try:
        system.set_scheduling(policy, priority)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        system.set_scheduling(policy | RESET_ON_FORK, priority)  # only privilege clears the flag


# The thread


def _slack(thread: str, system: System) -> Right:
    try:
        system.set_timer_slack(SLACK_NS)
    except OSError as error:
        return refused("timer_slack", in_words(error), thread)
    return granted("timer_slack", format_ns(SLACK_NS), thread)


def _affinity(thread: str, cpus: frozenset[int], system: System) -> Right:
    told = ("core " if len(cpus) == 1 else "cores ") + ", ".join(map(str, sorted(cpus)))
    try:
        system.set_cpus(cpus)
    except (OSError, ValueError) as error:
        why = in_words(error) if isinstance(error, OSError) else str(error)
        return refused(
            "affinity", f"{told}: {why}; the cpuset of this process must hold them", thread
        )
    return granted("affinity", told, thread)


def _fifo(thread: str, priority: int, *, inherited: bool, system: System) -> Right:
    limit, patience = system.limit("RLIMIT_RTPRIO"), system.limit("RLIMIT_RTTIME")
    try:
        if limit is not None and limit[0] < priority <= limit[1]:
            system.raise_limit("RLIMIT_RTPRIO")
        if patience is not None and patience[0] != UNLIMITED:
            if patience[1] != UNLIMITED:
                return refused("fifo", _impatience(patience[1]), thread)
            system.raise_limit("RLIMIT_RTTIME")
        policy = SCHED_FIFO if inherited else SCHED_FIFO | RESET_ON_FORK
        system.set_scheduling(policy, priority)
    except OSError as error:
        return refused("fifo", fifo_refusal(error, priority, system), thread)
    return granted("fifo", f"SCHED_FIFO {priority}", thread)


def _impatience(most_us: int) -> str:
    return (
        f"the limit rttime is {most_us} us: a thread that computes for so long without waiting "
        f"would end the process; 'USER - rttime unlimited' in {LIMITS_FILE} and a new login"
    )


def fifo_refusal(error: OSError, priority: int, system: System) -> str:
    """Return why SCHED_FIFO was refused, and what to change."""
    why = in_words(error)
    if error.errno != errno.EPERM:
        return why
    limit = system.limit("RLIMIT_RTPRIO")
    may = limit is not None and (limit[1] == UNLIMITED or limit[1] >= priority)
    if may or system.has_capability(CAP_SYS_NICE):
        return (
            f"{why}: this control group has no time for real-time threads (cpu.rt_runtime_us), or "
            "a sandbox forbids it"
        )
    most = 0 if limit is None else limit[1]
    return (
        f"{why}: the limit rtprio is {most}, {priority} is asked for; 'USER - rtprio {priority}' "
        f"in {LIMITS_FILE} and a new login, or CAP_SYS_NICE"
    )


# The process


@contextmanager
def locked_memory(system: System = SYSTEM) -> Iterator[Right]:
    """Keep what this process touches in memory until the end, unless a limit makes it unsafe."""
    if system.status("VmLck") not in {"", "0 kB"}:
        yield granted("memory_lock", f"{system.status('VmLck')} were locked before, and stay so")
        return
    right, flags = _lock(system)
    try:
        yield right
    finally:
        if flags:
            system.unlock_memory()


def _lock(system: System) -> tuple[Right, int]:
    try:
        flags, told = _lock_flags(system)
        if flags:
            system.lock_memory(flags)
            return granted("memory_lock", told), flags
    except OSError as error:
        told = in_words(error)
    return refused("memory_lock", told), 0


def _lock_flags(system: System) -> tuple[int, str]:
    """Return what may be locked without making later allocations fail, and what to tell."""
    both = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT, "all that is touched, now and later"
    limit = system.limit("RLIMIT_MEMLOCK")
    if system.has_capability(CAP_IPC_LOCK) or (limit is not None and limit[0] == UNLIMITED):
        return both
    if limit is not None and limit[1] == UNLIMITED:
        system.raise_limit("RLIMIT_MEMLOCK")
        return both
    most, mapped = 0 if limit is None else limit[0], system.virtual_bytes()
    remedy = f"'USER - memlock unlimited' in {LIMITS_FILE} and a new login, or CAP_IPC_LOCK"
    if mapped <= most:
        told = f"what is mapped now, later memory not: the limit memlock is {_mib(most)}; {remedy}"
        return MCL_CURRENT | MCL_ONFAULT, told
    return 0, f"the limit memlock is {_mib(most)}, {_mib(mapped)} are mapped; {remedy}"


def tuned_allocator(system: System = SYSTEM) -> Right:
    """Let glibc keep freed memory instead of mapping it anew; this stays until the process ends."""
    other = system.foreign_allocator()
    if other:
        return refused("allocator", f"{other} is loaded in place of glibc's: nothing was changed")
    library = system.c_library()
    if not library.startswith("glibc"):
        return refused("allocator", f"{library or 'this C library'} has no such settings")
    try:
        taken = [system.set_allocator(*setting) for setting in ALLOCATOR_SETTINGS]
    except OSError as error:
        return refused("allocator", in_words(error))
    if not all(taken):
        return refused("allocator", f"{library} did not take the values")
    return granted("allocator", f"{library} keeps what is freed, blocks up to 32 MiB")


def passive_openmp(
    system: System = SYSTEM, environment: MutableMapping[str, str] | None = None
) -> Right:
    """Let OpenMP's threads sleep while they wait, not spin; call it before torch is imported.

    Its library reads OMP_WAIT_POLICY once, when it is loaded. What the user set stays.
    """
    variables = os.environ if environment is None else environment
    wish = variables.get("OMP_WAIT_POLICY", "")
    if wish.upper() == "PASSIVE":
        return granted("openmp", "threads that wait for others sleep")
    if wish:
        return refused("openmp", f"OMP_WAIT_POLICY={wish} is set, and stays so")
    library = system.openmp_library()
    if library:
        told = f"{library} was loaded before; set OMP_WAIT_POLICY=PASSIVE before the start"
        return refused("openmp", told)
    variables["OMP_WAIT_POLICY"] = "PASSIVE"
    return granted("openmp", "threads that wait for others sleep")


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.0f} MiB"
