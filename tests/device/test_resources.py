"""What samples say of a host, and the thread that takes them."""

import threading
from itertools import count

import pytest

from avrt.device.resources import Counters, Gpus, HostReader, ResourceMonitor
from avrt.device.samples import GpuSample

SECOND = 1_000_000_000
FILES = {
    "proc/stat": "cpu 9 9 9 9\ncpu0 100 0 50 500 0 5 5 20 0 0\ncpu1 10 0 0 0 0 0 0 0 0 0\n"
    "cpu2 999 999 999 0 0 0 0 0 0 0\n",
    "proc/self/status": "Name:\tx\nVmRSS:\t  2048 kB\nThreads:\t7\n",
    "proc/self/fd/0": "",
    "proc/self/fd/1": "",
    "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:  4000 kB\n",
    "proc/pressure/memory": "some avg10=0.00 avg60=0 avg300=0 total=250\nfull avg10=0 total=1\n",
    "proc/self/cgroup": "0::/box\n",
    "sys/fs/cgroup/box/cpu.stat": "nr_throttled 2\nthrottled_usec 3000\n",
    "sys/fs/cgroup/box/memory.max": "3072000\n",
    "sys/fs/cgroup/box/memory.current": "1024000\n",
    "sys/class/thermal/thermal_zone0/temp": "41500\n",
    "sys/class/hwmon/hwmon0/temp1_input": "63000\n",
}


@pytest.fixture
def make_reader(tmp_path):
    """Return a function that makes a reader of two cores over kernel files."""

    def make(files=FILES, **options):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return HostReader(tmp_path, cpus=frozenset({0, 1}), **options)

    return make


def test_counters_are_of_our_cores_only(make_reader):
    reader = make_reader()
    tick_ns = reader._tick_ns
    now = reader.counters(5)
    assert (now.at_ns, now.busy_ns, now.steal_ns) == (5, 170 * tick_ns, 20 * tick_ns)
    assert (now.throttled_ns, now.memory_stall_ns) == (3_000_000, 250_000)


def test_processes_that_count_as_ours_are_ours(make_reader):
    stat = {"proc/77/stat": "77 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 200 100 0 0 20 0 1 0 0 0\n"}
    alone, partitions = make_reader(), make_reader(FILES | stat, partitions=lambda: [77, 78])
    before_ns = alone.counters(0).process_ns
    assert partitions.counters(0).process_ns - before_ns >= 300 * alone._tick_ns


def test_a_sample_is_what_lies_between_two_readings(make_reader):
    before = Counters(0, 0, 0, 0, 0, 0)
    now = Counters(SECOND, SECOND // 2, SECOND, SECOND // 10, 7, 9)
    sample = make_reader().sample(before, now)
    assert (sample.since_ns, sample.at_ns, sample.cores) == (0, SECOND, 2)
    assert (sample.process_cores, sample.others_cores, sample.steal_cores) == (0.5, 0.5, 0.1)
    assert (sample.throttled_ns, sample.memory_stall_ns) == (7, 9)
    assert (sample.rss_bytes, sample.threads, sample.descriptors) == (2048 * 1024, 7, 2)
    assert sample.available_bytes == 2_048_000
    assert sample.celsius == 63.0
    assert sample.gpus == ()


def test_counters_that_lag_behind_each_other_give_no_negative_share(make_reader):
    sample = make_reader().sample(Counters(0, 9, 0, 0, 0, 0), Counters(1, 5, 0, 0, 0, 0))
    assert (sample.process_cores, sample.others_cores) == (0, 0)


def test_what_a_host_does_not_tell_is_absent(make_reader):
    reader = make_reader({"proc/stat": "cpu 1\n"})
    now = reader.counters(1)
    assert (now.busy_ns, now.throttled_ns, now.memory_stall_ns) == (None, None, None)
    sample = reader.sample(reader.counters(0), now)
    absent = (
        sample.others_cores, sample.steal_cores, sample.throttled_ns, sample.memory_stall_ns,
        sample.rss_bytes, sample.available_bytes, sample.descriptors, sample.threads,
        sample.celsius,
    )  # fmt: skip
    assert absent == (None,) * 9


def test_the_first_version_of_control_groups_is_read(make_reader):
    files = {
        "proc/self/cgroup": "2:cpu:/\n4:memory:/box\n",
        "sys/fs/cgroup/cpu/cpu.stat": "nr_throttled 1\nthrottled_time 42\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "1000\n",
        "sys/fs/cgroup/memory/box/memory.usage_in_bytes": "400\n",
    }
    reader = make_reader(files)
    assert reader.counters(0).throttled_ns == 42
    assert reader.available_bytes() == 600


# The monitor


class Waits:
    """Lets the monitor wake a number of times, then waits for it to be stopped."""

    def __init__(self, wakes):
        self.left = wakes
        self.asked_ns = []

    def __call__(self, queue, timeout_ns):
        self.asked_ns.append(timeout_ns)
        if self.left:
            self.left -= 1
            return None
        return queue.get()


def monitored(reader, wakes, **options):
    """Return a monitor that woke as often on a clock of one second a reading."""
    seconds = count()
    waits = Waits(wakes)
    now_ns = lambda: next(seconds) * SECOND  # noqa: E731
    with ResourceMonitor(reader=reader, now_ns=now_ns, wait=waits, **options) as monitor:
        pass
    assert set(waits.asked_ns) == {monitor.period_ns}
    return monitor


def test_samples_follow_each_other_without_a_gap(make_reader):
    samples = monitored(make_reader(), 3).samples.all()
    ends = [(sample.since_ns // SECOND, sample.at_ns // SECOND) for sample in samples]
    assert ends == [(0, 1), (1, 2), (2, 3), (3, 5)]


def test_only_the_last_samples_are_kept(make_reader):
    samples = monitored(make_reader(), 5, samples_max=2).samples.all()
    assert [sample.since_ns // SECOND for sample in samples] == [4, 5]


def test_the_monitors_thread_is_prepared_first(make_reader):
    names = []
    monitored(make_reader(), 1, prepare=lambda: names.append(threading.current_thread().name))
    assert names == ["avrt-resources"]


@pytest.mark.live
def test_this_host_is_sampled():
    with ResourceMonitor(1) as monitor:
        while not monitor.samples:
            pass
    sample = monitor.samples.all()[0]
    assert sample.cores
    assert sample.rss_bytes
    assert sample.threads > 1
    assert sample.at_ns > sample.since_ns


# GPUs


class FakeNvml:
    """Two GPUs, or an error where told."""

    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self, fails=()):
        self.fails = set(fails)

    def _do(self, name):
        if name in self.fails:
            raise self.NVMLError(name)

    def nvmlInit(self):  # noqa: N802
        self._do("init")

    def nvmlDeviceGetCount(self):  # noqa: N802
        self._do("count")
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetUtilizationRates(self, handle):  # noqa: N802
        return type("Rates", (), {"gpu": 25 * handle})

    def nvmlDeviceGetMemoryInfo(self, handle):  # noqa: N802
        return type("Memory", (), {"used": 10 + handle, "total": 100})

    def nvmlDeviceGetTemperature(self, handle, _sensor):  # noqa: N802
        return 50 + handle


def test_gpus_are_told_by_nvml():
    assert Gpus(FakeNvml()).read() == (
        GpuSample(0, 0.0, 10, 100, 50.0),
        GpuSample(1, 0.25, 11, 100, 51.0),
    )


@pytest.mark.parametrize("fails", ["init", "count"])
def test_no_gpu_is_told_where_nvml_does_not_answer(fails):
    assert Gpus(FakeNvml([fails])).read() == ()
