"""Which cores a host has, read from its files, and which threads get which of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.device.topology import (
    Core,
    Topology,
    control_groups,
    parse_cpus,
    place,
    read_quota,
    read_topology,
)

SOME = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4))


@pytest.fixture
def write(tmp_path):
    """Return a function that writes kernel files below a root and returns the root."""

    def write(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return write


def plain(count, **options):
    return Topology(tuple(Core((cpu,)) for cpu in range(count)), **options)


# Reading


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("none\n", set())],
)
def test_lists_of_cores(text, cpus):
    assert parse_cpus(text) == cpus


def test_hyper_threads_of_one_core_are_together(write):
    folder = "sys/devices/system/cpu"
    root = write(
        {f"{folder}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}"
         for cpu in range(4)}
    )  # fmt: skip
    topology = read_topology(root, frozenset({0, 1, 2}))
    assert topology.cores == (Core((0, 2)), Core((1,)))
    assert topology.siblings
    assert topology.cpus == (0, 1, 2)


def test_nodes_and_isolated_cores(write):
    folder = "sys/devices/system/cpu"
    root = write(
        {
            f"{folder}/isolated": "3\n",
            f"{folder}/online": "0-3\n",
            f"{folder}/cpu2/node1/cpulist": "2-3",
            f"{folder}/cpu3/node1/cpulist": "2-3",
        }
    )
    topology = read_topology(root, frozenset({0, 2}))
    assert topology.cores == (Core((0,)), Core((2,), 1), Core((3,), 1, isolated=True))
    assert topology.nodes == (0, 1)


def test_isolated_cores_outside_the_cpuset_are_left_alone(write):
    root = write(
        {
            "sys/devices/system/cpu/isolated": "2-3",
            "proc/self/cgroup": "0::/box\n",
            "sys/fs/cgroup/box/cpuset.cpus.effective": "0-2\n",
        }
    )
    assert read_topology(root, frozenset({0, 1})).cpus == (0, 1, 2)


def test_a_host_that_tells_nothing_has_plain_cores(tmp_path):
    assert read_topology(tmp_path, frozenset({0, 1})) == plain(2)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000",
          "sys/fs/cgroup/a/cpu.max": "150000 100000"}, 1.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000"}, None),
        ({"proc/self/cgroup": "2:cpu,cpuacct:/box\n",
          "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "250000",
          "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000"}, 2.5),
        ({"proc/self/cgroup": "2:cpu:/hidden/by/the/container\n",
          "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000",
          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 0.5),
        ({"proc/self/cgroup": "2:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
    ids=["v2 above", "v2 none", "v1", "v1 hidden", "v1 none", "nothing told"],
)  # fmt: skip
def test_the_quota_is_the_least_of_all_groups(write, files, cores):
    assert read_quota(write(files)) == cores


def test_groups_of_other_controllers_are_not_looked_at(write):
    root = write({"proc/self/cgroup": "3:memory:/box\n", "sys/fs/cgroup/memory/box/x": ""})
    assert control_groups(root, "cpu") == []
    assert control_groups(root, "memory")[0] == root / "sys/fs/cgroup/memory/box"


# Placing


@pytest.mark.parametrize(
    ("topology", "why"),
    [
        (plain(1), "1 physical core,"),
        (plain(2), "2 physical cores,"),
        (Topology((Core((0, 2)), Core((1, 3)))), "2 physical cores,"),
        (plain(8, quota_cores=2.5), "the quota is 2.5 cores of 8"),
    ],
    ids=["one", "two", "two with hyper-threads", "a quota"],
)
def test_with_few_cores_nothing_is_pinned_and_the_reason_is_told(topology, why):
    plan = place(topology, {"a": 1})
    assert (plan.dispatcher, plan.streams, plan.others) == (set(), {"a": set()}, set())
    assert why in plan.told


def test_with_three_cores_the_dispatcher_alone_has_one_of_its_own():
    plan = place(plain(3), {"a": 1, "b": 1})
    assert plan.dispatcher == {2}
    assert plan.streams == {"a": {0, 1}, "b": {0, 1}}
    assert plan.others == {0, 1}
    assert plan.told == (
        "the dispatcher alone on core 2; 2 streams and the rest share the other 2 physical cores"
    )


def test_streams_have_cores_of_their_own_where_one_is_left():
    plan = place(plain(4), {"a": 1, "b": 1})
    assert plan.streams == {"a": {2}, "b": {1}}
    assert (plan.dispatcher, plan.others) == ({3}, {0})


def test_a_stream_of_two_threads_has_two_cores():
    plan = place(plain(5), {"a": 1, "b": 2})
    assert plan.streams == {"a": {1}, "b": {2, 3}}


def test_the_dispatcher_takes_an_isolated_core():
    cores = (Core((0,)), Core((1,), isolated=True), Core((2,)), Core((3,)))
    plan = place(Topology(cores), {})
    assert plan.dispatcher == {1}
    assert "core 1, isolated" in plan.told


def test_the_hyper_thread_beside_the_dispatcher_is_left_idle():
    plan = place(Topology(tuple(Core((cpu, cpu + 4)) for cpu in range(4))), {"a": 1})
    assert plan.dispatcher == {3}
    assert 7 not in plan.others | plan.streams["a"]


def test_a_stream_does_not_reach_over_two_nodes():
    cores = tuple(Core((cpu,), node=cpu // 4) for cpu in range(8))
    assert place(Topology(cores), {"a": 4}).streams == {"a": {0, 1, 2, 3}}
    split = place(Topology(cores), {"a": 3, "b": 3})
    assert split.streams == {"a": {4, 5, 6}, "b": {1, 2, 3}}


@settings(max_examples=50)
@given(st.integers(1, 12), st.none() | st.floats(0.5, 12), SOME)
def test_nobody_shares_the_dispatchers_core(count, quota, streams):
    plan = place(plain(count, quota_cores=quota), streams)
    assert list(plan.streams) == list(streams)
    assert not plan.dispatcher & plan.others
    for name, cpus in plan.streams.items():
        assert not plan.dispatcher & cpus
        assert bool(cpus) == bool(plan.dispatcher)
        assert not cpus or len(cpus) >= streams[name] or cpus == plan.others
    assert bool(plan.others) == bool(plan.dispatcher)


@pytest.mark.live
def test_this_host_has_cores():
    topology = read_topology()
    assert topology.cpus
    assert 0 < topology.usable_cores <= len(topology.cores)
    assert place(topology, {"a": 1}).told
