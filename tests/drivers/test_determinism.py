"""The same run is the same to the byte, in every process and from one version to the next.

A change of behaviour shows as a changed `tests/golden/*.journal` in its commit. Write them anew
with `python tests/drivers/test_determinism.py`, and say in the commit why they changed.
"""

import os
import subprocess
import sys
import textwrap
from heapq import merge
from operator import itemgetter
from pathlib import Path

import pytest

from avrt.config.pipeline import load
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal, parse_entry
from avrt.model.codec import encode, to_json
from avrt.model.events import DeviceBack, DeviceLost, StreamLost

GOLDEN = Path(__file__).parents[1] / "golden"
MS = 1_000_000
NAMES = ("overload", "preemption")
FAULTS = {
    "overload": [(530 * MS, StreamLost("beat"))],
    "preemption": [(233 * MS, DeviceLost("main")), (400 * MS, DeviceBack("main"))],
}


def journal(name):
    """Simulate a golden pipeline for 0.6 s; execution times vary with the job's index."""
    spec = load(GOLDEN / f"{name}.yaml").spec
    wcet_ns = {stage.name: stage.wcet_ns for stage in spec.stages}

    def execution(task, index):
        return wcet_ns[task] * (2 + index * 7 % 5) // 5

    arrivals = periodic_arrivals(spec, 600 * MS)
    feed = merge(arrivals, FAULTS[name], key=itemgetter(0))
    lines = []
    simulate(
        spec,
        until_ns=600 * MS,
        execution=execution,
        feed=feed,
        write=lambda _, line: lines.append(line),
    )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_journal_is_the_same_to_the_byte(name):
    expected = (GOLDEN / f"{name}.journal").read_text(encoding="ascii").splitlines()
    found = journal(name).splitlines()
    for index, (want, have) in enumerate(zip(expected, found, strict=False)):
        assert have == want, f"entry {index}"
    assert len(found) == len(expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_fresh_kernel_decides_as_the_golden_journal_says(name):
    kernel = Kernel(load(GOLDEN / f"{name}.yaml").spec)
    again = Journal()
    for line in (GOLDEN / f"{name}.journal").read_text(encoding="ascii").splitlines():
        entry = parse_entry(line)
        commands = kernel.handle(entry.at_ns, entry.events)
        assert [to_json(encode(c)) for c in commands] == [
            to_json(encode(c)) for c in entry.commands
        ]
        assert again.note(entry.at_ns, entry.events, entry.commands) == line


HELD = {
    "overload": """MissRecord WindowRecord ChainRecord ChainBroken SyncRecord ResourceRecord
        skipped aborted late met queue_full stale blocking waiting running StreamLost Drain""",
    "preemption": "Preempt Resume Abort OverrunRecord DeviceLost DeviceBack lost budget",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_golden_journals_hold_what_they_are_for(name):
    text = (GOLDEN / f"{name}.journal").read_text(encoding="ascii")
    assert [word for word in HELD[name].split() if f'"{word}"' not in text] == []


RUN = textwrap.dedent("""
    import sys
    import numpy as np
    import avrt
    from avrt.logs.writer import LogWriter
    from avrt.world import World, make_scene

    path = sys.argv[1]
    world = World(make_scene("cut_in", 3), 1.0)
    world.advance()
    with LogWriter(path) as log:
        for k in range(8):
            cloud = world.lidar(k * 10**8)
            log.add_cloud("/lidar", "lidar_roof", 10**18 + k * 10**8, cloud.xyz, cloud.intensity)

    def product(cloud):
        xyz = np.nan_to_num(cloud.payload.xyz).astype(np.float32)
        return {"gram": xyz.T @ xyz, "mean": xyz.mean(0), "singular": np.linalg.svd(xyz[:400])[1]}

    def names(item):
        return sorted({"a", "b", "c", str(item.payload["mean"][0])})

    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu", "slots": 2}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    for k in range(3):
        pipeline.add(product, name=f"product_{k}", inputs={"cloud": "lidar"}, wcet="45 ms",
                     deadline="80 ms", on_miss="abort")
    pipeline.add(names, inputs={"item": "product_0"}, wcet="5 ms", deadline="9 ms")
    report = pipeline.replay(path)
    print(report.data["digests"], report.jobs)
""")


@pytest.mark.slow
def test_ten_processes_give_one_pair_of_digests(tmp_path):
    outputs = set()
    for seed in range(10):
        environment = dict(os.environ, PYTHONHASHSEED=str(seed), OMP_NUM_THREADS=str(1 + seed % 4))
        command = [sys.executable, "-c", RUN, str(tmp_path / "drive.mcap")]
        done = subprocess.run(command, check=True, env=environment, capture_output=True)  # noqa: S603 - our own code
        outputs.add(done.stdout)
    (output,) = outputs
    assert b"'aborted': 0" not in output


if __name__ == "__main__":
    for each in NAMES:
        (GOLDEN / f"{each}.journal").write_text(journal(each), encoding="ascii")
