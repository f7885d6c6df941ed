"""What the host gives this process, sampled beside it: cores, memory, descriptors, heat, GPUs.

A sample says what happened since the one before it. It is taken by a thread of its own, off the
critical path, from a dozen small kernel files (about 1 ms); what a host does not tell is None.
Shares of cores are in cores: 1.5 is one core and a half, over those this process may use.

Kernel counters tick at 100 Hz: over half a second a share is right to 0.02 of a core.
"""

from __future__ import annotations

import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, Self

from avrt import clock
from avrt.device.samples import GpuSample, ResourceSample, Samples
from avrt.device.topology import control_groups, read_topology
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PERIOD_NS = 500 * NS_PER_MS
SAMPLES_MAX = 7200  # an hour at the default period
SPAN_NS_MIN = 100 * NS_PER_MS  # over less the ticks of the counters tell nothing
MEMORY_FILES = (
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)
NO_LIMIT_BYTES = 1 << 60  # control groups write a huge number for no limit
NS_PER_US = 1000
MILLI = 1000.0


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts since some start, in ns; a sample is the difference of two of them."""

    at_ns: int
    process_ns: int
    busy_ns: int | None
    steal_ns: int | None
    throttled_ns: int | None
    memory_stall_ns: int | None


class HostReader:
    """Reads counters and levels of this process from the kernel's files below `root`.

    Args:
        root: where `/proc` and `/sys` are.
        cpus: the cores that are ours; those this process may use when not given.
        partitions: gives the ids of processes that count as this one, asked at every sample.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        cpus: frozenset[int] | None = None,
        partitions: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self._root = root
        self.cpus = frozenset(read_topology(root).cpus) if cpus is None else cpus
        self._partitions = partitions
        self._cpu_groups = control_groups(root, "cpu")
        self._memory_files = [
            (folder / limit, folder / used)
            for folder in control_groups(root, "memory")
            for limit, used in MEMORY_FILES
            if (folder / limit).is_file()
        ]
        self._heat_files = (
            *root.glob("sys/class/thermal/thermal_zone*/temp"),
            *root.glob("sys/class/hwmon/hwmon*/temp*_input"),
        )
        self._tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
        self.gpus = Gpus()

    def counters(self, at_ns: int) -> Counters:
        busy, steal = self._processor_ns()
        return Counters(
            at_ns=at_ns,
            process_ns=self._process_ns(),
            busy_ns=busy,
            steal_ns=steal,
            throttled_ns=self._throttled_ns(),
            memory_stall_ns=self._memory_stall_ns(),
        )

    def sample(self, before: Counters, now: Counters) -> ResourceSample:
        """Return what lies between two readings, and the levels of this moment."""
        span_ns = max(1, now.at_ns - before.at_ns)
        busy, steal = _rise(before.busy_ns, now.busy_ns), _rise(before.steal_ns, now.steal_ns)
        process_ns = max(0, now.process_ns - before.process_ns)  # a partition may have ended
        status = _pairs(self._text("proc/self/status"))
        return ResourceSample(
            since_ns=before.at_ns,
            at_ns=now.at_ns,
            cores=len(self.cpus),
            process_cores=process_ns / span_ns,
            others_cores=None if busy is None else max(0, busy - process_ns) / span_ns,
            steal_cores=None if steal is None else steal / span_ns,
            throttled_ns=_rise(before.throttled_ns, now.throttled_ns),
            memory_stall_ns=_rise(before.memory_stall_ns, now.memory_stall_ns),
            rss_bytes=_kib(status.get("VmRSS")),
            available_bytes=self.available_bytes(),
            descriptors=self._descriptors(),
            threads=_number(status.get("Threads")),
            celsius=self._celsius(),
            gpus=self.gpus.read(),
        )

    def available_bytes(self) -> int | None:
        """Return what could still be had, within the limits of the control groups."""
        found = [_kib(_pairs(self._text("proc/meminfo")).get("MemAvailable"))]
        for limit, usage in self._memory_files:
            most, used = _number(_text(limit)), _number(_text(usage))
            if most is not None and used is not None and most < NO_LIMIT_BYTES:
                found.append(max(0, most - used))
        return min((size for size in found if size is not None), default=None)

    def _process_ns(self) -> int:
        """Return the CPU time of this process and of its partitions."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        total_ns = round((used.ru_utime + used.ru_stime) * NS_PER_S)
        for process in self._partitions():
            fields = self._text(f"proc/{process}/stat").rpartition(")")[2].split()
            total_ns += sum(map(int, fields[11:13])) * self._tick_ns  # utime, stime
        return total_ns

    def _processor_ns(self) -> tuple[int | None, int | None]:
        """Return for how long our cores were busy, and taken by the hypervisor."""
        busy = steal = 0
        lines = [line.split() for line in self._text("proc/stat").splitlines()]
        ours = {f"cpu{cpu}" for cpu in self.cpus}
        found = [list(map(int, line[1:])) for line in lines if line and line[0] in ours]
        for user, nice, system, _idle, _wait, irq, softirq, stolen, *_ in found:
            busy += user + nice + system + irq + softirq
            steal += stolen
        return (busy * self._tick_ns, steal * self._tick_ns) if found else (None, None)

    def _throttled_ns(self) -> int | None:
        for folder in self._cpu_groups:
            stat = _pairs(_text(folder / "cpu.stat"))
            if "throttled_time" in stat:
                return _number(stat["throttled_time"])
            if "throttled_usec" in stat:
                return int(stat["throttled_usec"]) * NS_PER_US
        return None

    def _memory_stall_ns(self) -> int | None:
        for line in self._text("proc/pressure/memory").splitlines():
            if line.startswith("some "):
                return int(line.rpartition("total=")[2]) * NS_PER_US
        return None

    def _descriptors(self) -> int | None:
        try:
            return len(os.listdir(self._root / "proc/self/fd"))  # noqa: PTH208 - no Path a name
        except OSError:
            return None

    def _celsius(self) -> float | None:
        found = [_number(_text(path)) for path in self._heat_files]
        return max((milli / MILLI for milli in found if milli is not None), default=None)

    def _text(self, path: str) -> str:
        return _text(self._root / path)


class ResourceMonitor:
    """Samples this process and its host on a thread of its own, and keeps the last ones.

    Attributes:
        period_ns: from one sample to the next.
        samples: the last ones.

    Args:
        samples_max: how many are kept.
        reader: of the host.
        now_ns: the clock; that of the driver's lateness.
        wait: waits for the end or for the period to pass.
        prepare: called once in the monitor's thread, to set it up.
    """

    def __init__(
        self,
        period_ns: int = PERIOD_NS,
        *,
        samples_max: int = SAMPLES_MAX,
        reader: HostReader | None = None,
        now_ns: Callable[[], int] = clock.now_ns,
        wait: Callable[[SimpleQueue[bool], int], bool | None] = clock.take,
        prepare: Callable[[], object] = tuple,
    ) -> None:
        self.period_ns = period_ns
        self._reader = HostReader() if reader is None else reader
        self.samples = Samples(samples_max, self._reader.gpus.count)
        self._now_ns = now_ns
        self._wait = wait
        self._prepare = prepare
        self._stop: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="avrt-resources", daemon=True)
        self._before = self._reader.counters(now_ns())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.put(True)
        self._thread.join()

    def _run(self) -> None:
        self._prepare()
        while self._wait(self._stop, self.period_ns) is None:
            self._take()
        if self._now_ns() - self._before.at_ns >= SPAN_NS_MIN:
            self._take()

    def _take(self) -> None:
        now = self._reader.counters(self._now_ns())
        self.samples.append(self._reader.sample(self._before, now))
        self._before = now


# GPUs


class _Nvml(Protocol):
    """The part of pynvml that is used."""

    NVML_TEMPERATURE_GPU: int
    NVMLError: type[Exception]

    def nvmlInit(self) -> None: ...  # noqa: N802 - its names
    def nvmlDeviceGetCount(self) -> int: ...  # noqa: N802
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...  # noqa: N802
    def nvmlDeviceGetUtilizationRates(self, handle: object) -> _Rates: ...  # noqa: N802
    def nvmlDeviceGetMemoryInfo(self, handle: object) -> _Memory: ...  # noqa: N802
    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int: ...  # noqa: N802


class _Rates(Protocol):
    gpu: int


class _Memory(Protocol):
    used: int
    total: int


class Gpus:
    """The GPUs that NVML tells of; none where `pynvml` is not installed or does not answer."""

    def __init__(self, nvml: _Nvml | None = None) -> None:
        self._nvml = _working(_import_nvml() if nvml is None else nvml)
        self.count = len(self.read())

    def read(self) -> tuple[GpuSample, ...]:
        nvml = self._nvml
        if nvml is None:
            return ()
        try:
            return tuple(self._one(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
        except nvml.NVMLError:
            return ()  # a GPU that fell off: its stream tells that; the monitor goes on

    def _one(self, nvml: _Nvml, index: int) -> GpuSample:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        return GpuSample(
            index=index,
            busy_share=nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
            used_bytes=memory.used,
            total_bytes=memory.total,
            celsius=float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        )


def _import_nvml() -> _Nvml | None:
    try:
        import pynvml  # type: ignore[import-not-found]  # noqa: PLC0415 - there with a GPU only
    except ImportError:
        return None
    nvml: _Nvml = pynvml
    return nvml


def _working(nvml: _Nvml | None) -> _Nvml | None:
    if nvml is None:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


# Texts of the kernel


def _rise(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(0, now - before)


def _pairs(text: str) -> dict[str, str]:
    """Return the lines of `key value` or `key: value` files."""
    pairs = (line.replace(":", " ", 1).split(maxsplit=1) for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _number(text: str | None) -> int | None:
    word = (text or "").strip()
    return int(word) if word.lstrip("-").isdigit() else None


def _kib(text: str | None) -> int | None:
    number = _number((text or "").partition(" ")[0])
    return None if number is None else number * 1024


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
