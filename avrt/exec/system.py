"""What the real-time measures ask of the operating system: one method a call, refusals as OSError.

Everything here acts on the calling thread or on this process, needs no library but the C one, and
is replaced by a fake in tests. Where the system is not Linux every method raises ENOSYS.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc", "hoard")
OPENMP_LIBRARIES = ("libgomp", "libiomp", "libomp")


class System:
    """The system this process runs on.

    Attributes:
        root: where `/proc` and `/etc` are looked for.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def read(self, path: str) -> str | None:
        """Return the text of a kernel file, stripped; None where there is none to read."""
        try:
            return (self.root / path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None

    # The calling thread

    def scheduling(self) -> tuple[int, int]:
        """Return policy (with its flags) and priority of the calling thread."""
        _linux_only()
        return os.sched_getscheduler(0), os.sched_getparam(0).sched_priority

    def set_scheduling(self, policy: int, priority: int) -> None:
        _linux_only()
        os.sched_setscheduler(0, policy, os.sched_param(priority))

    def cpus(self) -> frozenset[int]:
        """Return where the calling thread may run."""
        _linux_only()
        return frozenset(os.sched_getaffinity(0))

    def set_cpus(self, cpus: Iterable[int]) -> None:
        _linux_only()
        os.sched_setaffinity(0, cpus)

    def timer_slack_ns(self) -> int:
        return _call("prctl", PR_GET_TIMERSLACK, 0, 0, 0, 0)

    def set_timer_slack(self, slack_ns: int) -> None:
        _call("prctl", PR_SET_TIMERSLACK, slack_ns, 0, 0, 0)

    # The process

    def lock_memory(self, flags: int) -> None:
        _call("mlockall", flags)

    def unlock_memory(self) -> None:
        _call("munlockall")

    def set_allocator(self, parameter: int, value: int) -> bool:
        """Call `mallopt`; return whether it took the value."""
        _linux_only()
        return bool(_library().mallopt(parameter, value))

    def c_library(self) -> str:
        """Return the C library's name and version, such as `glibc 2.36`; empty when unknown."""
        return " ".join(part for part in platform.libc_ver() if part)

    def limit(self, name: str) -> tuple[int, int] | None:
        """Return soft and hard value of a limit such as `RLIMIT_RTPRIO`; -1 is unlimited."""
        try:
            import resource  # noqa: PLC0415 - POSIX only
        except ImportError:
            return None
        which = getattr(resource, name, None)
        return None if which is None else resource.getrlimit(which)

    def raise_limit(self, name: str) -> None:
        """Raise a limit as far as its hard value."""
        import resource  # noqa: PLC0415 - POSIX only

        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (hard, hard))

    def status(self, key: str) -> str:
        """Return one line of `/proc/self/status` without its key; empty when there is none."""
        for line in (self.read("proc/self/status") or "").splitlines():
            name, _, value = line.partition(":")
            if name == key:
                return value.strip()
        return ""

    def has_capability(self, capability: int) -> bool:
        text = self.status("CapEff")
        return bool(text) and bool(int(text, 16) >> capability & 1)

    def virtual_bytes(self) -> int:
        """Return how much address space this process has mapped; 0 when unknown."""
        value = self.status("VmSize").partition(" ")[0]
        return int(value) * 1024 if value else 0

    def loaded(self, names: Iterable[str]) -> str:
        """Return the first of the libraries that this process has loaded; empty when none."""
        libraries = {
            line.rpartition("/")[2] for line in (self.read("proc/self/maps") or "").splitlines()
        }
        found = (n for n in names if any(library.startswith(n) for library in libraries))
        return next(found, "")

    def foreign_allocator(self) -> str:
        """Return the allocator that was loaded in place of the C library's; empty when none."""
        return self.loaded(f"lib{name}" for name in ALLOCATORS).removeprefix("lib")

    def openmp_library(self) -> str:
        """Return the OpenMP library that is loaded; empty when none is."""
        return self.loaded(OPENMP_LIBRARIES)


SYSTEM = System()


def _linux_only() -> None:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux has it")


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int) -> int:
    """Call a function of the C library that answers -1 when it is refused."""
    _linux_only()
    answer = getattr(_library(), name)(*(ctypes.c_ulong(argument) for argument in arguments))
    if answer == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(answer)
