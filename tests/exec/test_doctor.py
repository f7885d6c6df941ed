"""Every check of a host, well and otherwise; and what the measurements give."""

import errno
import gzip
import math

import pytest

from avrt.device.topology import Core, Topology
from avrt.exec.doctor import libraries, memory, processors, scheduling
from avrt.exec.doctor.check import Host
from avrt.exec.doctor.examine import counts, examine
from avrt.exec.doctor.measure import (
    ORDINARY,
    REALTIME,
    SLACK,
    SWITCHED,
    TRIALS,
    Trial,
    busy_block,
    granted_rights,
    hand_over_block,
    measure,
    wake_block,
)
from avrt.exec.rights import granted, refused
from avrt.exec.system import CAP_IPC_LOCK, CAP_SYS_NICE

TWO = Topology((Core((0,)), Core((1,))))
FOUR = Topology(tuple(Core((cpu, cpu + 4)) for cpu in range(4)), siblings=True)
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
VERSION = "proc/sys/kernel/version"
PREEMPT = "sys/kernel/debug/sched/preempt"
PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
RUNTIME = "proc/sys/kernel/sched_rt_runtime_us"


@pytest.fixture
def make_host(make_system):
    """Return a function that makes a host of two cores with kernel files given by path."""

    def make(files=(), *, topology=TWO, environment=(), **options):
        system = make_system(files, **options)
        return Host(system, topology, dict(environment), system.root)

    return make


@pytest.mark.parametrize(
    ("check", "options", "verdict", "word"),
    [
        (processors.cores, {}, "ok", "2 physical"),
        (processors.cores, {"topology": Topology((Core((0,)),))}, "advice", "more cores"),
        (processors.cores, {"topology": Topology(TWO.cores, 1.5)}, "advice", "--cpuset-cpus"),
        (processors.pinning, {}, "ok", "nothing is pinned"),
        (processors.siblings, {}, "ok", "none"),
        (processors.siblings, {"topology": FOUR}, "advice", "smt/control"),
        (processors.isolated, {}, "ok", "none"),
        (processors.isolated, {"topology": FOUR}, "advice", "isolcpus=7"),
        (processors.governor, {}, "ok", "none told"),
        (processors.governor, {"files": {GOVERNOR: "performance\n"}}, "ok", "performance"),
        (processors.governor, {"files": {GOVERNOR: "powersave\n"}}, "advice", "cpupower"),
        (processors.clock_source, {"files": {CLOCK: "tsc\n"}}, "ok", "ns a reading"),
        (processors.clock_source, {"files": {CLOCK: "hpet\n"}}, "advice", "clocksource=tsc"),
        (processors.load, {"files": {"proc/loadavg": "0.9 1 1 1/2 3"}}, "ok", "0.90"),
        (processors.load, {"files": {"proc/loadavg": "1.1 1 1 1/2 3"}}, "advice", "top"),
        (processors.steal, {"files": {"proc/stat": "cpu 90 0 0 10 0 0 0 0 0 0"}}, "ok", "0.00%"),
        (processors.steal, {"files": {"proc/stat": "cpu 90 0 0 0 0 0 0 10 0 0",
         "proc/cpuinfo": "flags : fpu hypervisor\n"}}, "advice", "10.00%"),
        (processors.container, {}, "ok", "no"),
        (processors.container, {"files": {".dockerenv": ""}}, "advice", "--cap-add SYS_NICE"),
        (processors.container, {"environment": {"container": "podman"},
         "capabilities": {CAP_SYS_NICE, CAP_IPC_LOCK}}, "ok", "podman"),
        (processors.container, {"files": {"run/.containerenv": ""}}, "advice", "podman"),
        (scheduling.fifo, {}, "ok", "SCHED_FIFO 80"),
        (scheduling.fifo, {"refuses": {"set_scheduling": errno.EPERM}}, "refused", "rtprio 80"),
        (scheduling.throttling, {}, "ok", "not told"),
        (scheduling.throttling, {"files": {RUNTIME: "-1\n"}}, "advice", "sysctl"),
        (scheduling.timer_slack, {}, "ok", "50 us by default, 1 ns"),
        (scheduling.timer_slack, {"refuses": {"set_timer_slack": errno.EPERM}}, "refused", "prctl"),
        (scheduling.memory_lock, {"limits": {"RLIMIT_MEMLOCK": (-1, -1)}}, "ok", "now and later"),
        (scheduling.memory_lock, {"limits": {"RLIMIT_MEMLOCK": (8, 8)},
         "status": {"VmSize": "10 kB"}}, "refused", "memlock unlimited"),
        (scheduling.open_files, {}, "ok", "unlimited"),
        (scheduling.open_files, {"limits": {"RLIMIT_NOFILE": (4096, 4096)}}, "ok", "4096"),
        (scheduling.open_files, {"limits": {"RLIMIT_NOFILE": (256, 4096)}}, "advice", "ulimit -n"),
        (scheduling.switch_interval, {}, "ok", "while running live"),
        (memory.memory, {}, "ok", "not told"),
        (memory.memory, {"files": {"proc/meminfo": "MemAvailable: 100 kB"}}, "advice", "0.0 GiB"),
        (memory.swap, {"files": {"proc/swaps": "Filename\n"}}, "ok", "none"),
        (memory.swap, {"files": {"proc/swaps": "Filename\n/swap file 1 0\n"}}, "advice", "swapoff"),
        (memory.huge_pages, {"files": {PAGES: "always [madvise] never"}}, "ok", "madvise"),
        (memory.huge_pages, {"files": {PAGES: "[always] madvise never"}}, "advice", "tee"),
        (memory.allocator, {}, "ok", "glibc"),
        (memory.allocator, {"library": "musl"}, "refused", "LD_PRELOAD"),
        (memory.allocator, {"files": {"proc/self/maps": "1 r /x/libtcmalloc_minimal.so\n"}}, "ok",
         "tcmalloc"),
        (memory.shared_memory, {}, "ok", "GiB"),
        (libraries.torch_threads, {}, "ok", "an operation by default"),
        (libraries.torch_threads, {"environment": {"OMP_NUM_THREADS": "4"}}, "advice",
         "OMP_NUM_THREADS=4"),
    ],
)  # fmt: skip
def test_a_check(make_host, check, options, verdict, word):
    done = check(make_host(**options))
    assert done.verdict == verdict, done
    assert word in f"{done.found} {done.remedy}"
    assert done.wanted
    assert done.cost
    assert bool(done.remedy) == (verdict != "ok")


@pytest.mark.parametrize(
    ("files", "model"),
    [
        ({"sys/kernel/realtime": "1\n"}, "PREEMPT_RT"),
        ({VERSION: "#1 SMP PREEMPT_RT Mon"}, "PREEMPT_RT"),
        ({PREEMPT: "none voluntary (full) lazy", VERSION: "#1 SMP PREEMPT_DYNAMIC"}, "full"),
        ({"proc/cmdline": "quiet preempt=voluntary"}, "voluntary"),
        ({}, "not told"),
    ],
)
def test_how_the_kernel_may_be_interrupted(make_host, files, model):
    host = make_host(files)
    assert processors.preemption_model(host) == model
    assert (processors.preemption(host).verdict == "ok") == (model in {"PREEMPT_RT", "full"})


@pytest.mark.parametrize(
    ("lines", "model"),
    [("CONFIG_PREEMPT_NONE=y", "none"), ("CONFIG_PREEMPT=y", "full"), ("CONFIG_HZ=1", "not told")],
)
def test_how_the_kernel_was_built(make_host, lines, model):
    host = make_host({VERSION: "#1 SMP PREEMPT_DYNAMIC Mon"})
    with gzip.open(host.system.root / "proc/config.gz", "wt") as text:
        text.write(f"{lines}\n")
    assert processors.preemption_model(host).startswith(f"{model}, as it was built")


def test_openmp_that_was_too_late_is_advice():
    assert libraries.openmp_policy(granted("openmp", "x")).verdict == "ok"
    late = libraries.openmp_policy(refused("openmp", "libgomp was loaded before"))
    assert late.verdict == "advice"
    assert "OMP_WAIT_POLICY" in late.remedy


def test_a_host_without_a_gpu_is_no_worse(make_host):
    assert [check.verdict for check in libraries.gpu(make_host())] == ["ok"]


@pytest.mark.parametrize(
    ("built", "works", "verdict", "word"),
    [
        (None, False, "advice", "built without CUDA"),
        ("12.8", False, "advice", "none usable"),
        ("12.8", True, "ok", "CUDA 12.8, 2 devices"),
    ],
)
def test_a_gpu_that_torch_cannot_use_is_advice(make_host, monkeypatch, built, works, verdict, word):
    monkeypatch.setattr("torch.version.cuda", built)
    monkeypatch.setattr("torch.cuda.is_available", lambda: works)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    files = {"proc/driver/nvidia/version": "NVRM version: Kernel Module 570\nGCC version: 12\n"}
    driver, cuda, nvml = libraries.gpu(make_host(files))
    assert driver.found == "Kernel Module 570"
    assert (cuda.verdict, word in cuda.found) == (verdict, True)
    assert nvml.name == "NVML"


def test_the_disk_is_that_of_the_folder(make_host, monkeypatch, tmp_path):
    host = make_host()
    assert str(tmp_path) in memory.disk(host).found
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1 << 20}))
    assert memory.disk(host).verdict == "advice"
    monkeypatch.undo()
    gone = Host(host.system, TWO, {}, tmp_path / "nowhere")
    assert memory.disk(gone).verdict == "advice"


def test_shared_memory_may_be_absent(make_host, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOENT, "no")

    monkeypatch.setattr("os.statvfs", fail)
    assert memory.shared_memory(make_host()).found == "absent"


def test_a_host_that_tells_nothing_is_examined(make_host, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    checks = examine(make_host(limits={"RLIMIT_MEMLOCK": (-1, -1)}))
    names = [check.name for check in checks]
    assert len(names) == len(set(names)) == 25
    assert sum(counts(checks).values()) == 25
    assert counts(checks)["refused"] == 0


# Measuring


@pytest.mark.live
@pytest.mark.usefixtures("settled")
def test_every_kind_of_work_is_measured_under_every_arm():
    trials = (
        Trial("wake", wake_block, (ORDINARY, SLACK), 1),
        Trial("hand-over", hand_over_block, (ORDINARY, REALTIME), 2),
        Trial("busy", busy_block, (SWITCHED,), 1),
    )
    found = measure(trials, rounds=2)
    assert [(row.trial, row.arm, len(row.taken)) for row in found] == [
        ("wake", "ordinary", 2),
        ("wake", "timer slack only", 2),
        ("hand-over", "ordinary", 4),
        ("hand-over", "all that is granted", 4),
        ("busy", SWITCHED.name, 2),
    ]
    assert all(ns >= 0 for row in found for ns in row.taken.values)


def test_arms_take_turns():
    seen = []
    arms = (ORDINARY, SLACK, SWITCHED)
    trial = Trial("x", lambda arm, count, _: seen.append((arm.name, count)), arms, 7)
    measure((trial,), rounds=3)
    firsts = [name for name, _ in seen[:: len(arms)]]
    assert firsts == [arm.name for arm in arms]
    assert {count for _, count in seen} == {7}


@pytest.mark.slow
@pytest.mark.live
def test_beside_busy_processes_wake_ups_are_measured_and_the_processes_end():
    trial = next(trial for trial in TRIALS if trial.name == "wake beside busy processes")
    found = measure((Trial(trial.name, trial.block, (ORDINARY,), 2),), rounds=1)
    assert len(found[0].taken) == 2


@pytest.mark.usefixtures("settled")
def test_what_is_granted_here_is_told():
    names = [right.name for right in granted_rights()]
    assert names[-2:] == ["timer_slack:dispatcher", "fifo:dispatcher"]
    assert "memory_lock" in names


def test_the_measurements_end():
    periods = {"wake": 0.005, "wake beside busy processes": 0.005, "hand-over": 0.001}
    seconds = [
        5 * len(trial.arms) * trial.count * periods.get(trial.name, 0.01) for trial in TRIALS
    ]
    assert math.fsum(seconds) < 15
