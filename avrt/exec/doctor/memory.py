"""Checks of memory, of what may take it away, and of room on disks."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from avrt.device.resources import HostReader
from avrt.exec.doctor.check import Check, Host, asked, gib, judged
from avrt.exec.realtime import tuned_allocator

if TYPE_CHECKING:
    from collections.abc import Iterator

AVAILABLE_BYTES_MIN = 2 << 30
DISK_BYTES_MIN = 5 << 30
SHARED_BYTES_MIN = 256 << 20


def check_memory(host: Host) -> Iterator[Check]:
    """Yield every check of memory and disks."""
    yield memory(host)
    yield swap(host)
    yield huge_pages(host)
    yield allocator(host)
    yield shared_memory(host)
    yield disk(host)


def memory(host: Host) -> Check:
    free_bytes = HostReader(host.system.root, cpus=frozenset()).available_bytes()
    return judged(
        "memory", "not told" if free_bytes is None else f"{gib(free_bytes)} available",
        f"{gib(AVAILABLE_BYTES_MIN)} or more",
        good=free_bytes is None or free_bytes >= AVAILABLE_BYTES_MIN,
        remedy="end what else runs, or raise the container's limit: docker run --memory",
        cost="without room the kernel takes pages away or ends a process",
    )  # fmt: skip


def swap(host: Host) -> Check:
    areas = host.file("proc/swaps").splitlines()[1:]
    return judged(
        "swap", ", ".join(area.split()[0] for area in areas) or "none", "none", good=not areas,
        remedy="sudo swapoff -a, and take it out of /etc/fstab",
        cost="memory that is not locked may come back from disk in the middle of a job, within "
        "milliseconds. Not measured here",
    )  # fmt: skip


def huge_pages(host: Host) -> Check:
    text = host.file("sys/kernel/mm/transparent_hugepage/enabled")
    mode = text.partition("[")[2].partition("]")[0] or "not told"
    return judged(
        "transparent huge pages", mode, "madvise or never", good=mode != "always",
        remedy="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        cost="a fault clears 2 MiB at once: with huge pages for all of malloc one network took "
        "17 % longer, a sequence of four 7 % less",
    )  # fmt: skip


def allocator(host: Host) -> Check:
    right = tuned_allocator(host.system)
    remedy = "start without LD_PRELOAD of another allocator, on a system with glibc"
    if not right.granted and host.system.foreign_allocator().startswith("tcmalloc"):
        return Check("allocator", "tcmalloc", "glibc, tuned, or tcmalloc", "ok", cost=right.cost)
    return asked("allocator", right, "glibc, tuned while running", remedy)


def shared_memory(_host: Host) -> Check:
    try:
        numbers = os.statvfs("/dev/shm")  # noqa: S108 - its size only
    except OSError:
        total_bytes = 0
    else:
        total_bytes = numbers.f_frsize * numbers.f_blocks
    return judged(
        "shared memory", gib(total_bytes) if total_bytes else "absent",
        f"{gib(SHARED_BYTES_MIN)} or more", good=total_bytes >= SHARED_BYTES_MIN,
        remedy="docker run --shm-size=1g, or sudo mount -o remount,size=1g /dev/shm",
        cost="stages in processes of their own exchange frames there; a frame of 6 MB took 0.5 ms "
        "through it, 20 ms through a pipe",
    )  # fmt: skip


def disk(host: Host) -> Check:
    try:
        free_bytes = shutil.disk_usage(host.folder).free
    except OSError as error:
        found = f"{host.folder}: {error.strerror}"
        return Check("disk", found, "a folder", "advice", "give --path another folder", "")
    return judged(
        "disk", f"{gib(free_bytes)} free at {host.folder.resolve()}",
        f"{gib(DISK_BYTES_MIN)} or more", good=free_bytes >= DISK_BYTES_MIN,
        remedy="free some, or write run records elsewhere (-o)",
        cost="a full disk cuts the run record short",
    )  # fmt: skip
