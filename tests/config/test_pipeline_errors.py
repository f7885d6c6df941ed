"""Each kind of mistake in a pipeline file gives one line: place, key, what is wrong, remedy."""

# ruff: noqa: E501 - a message is one line

from __future__ import annotations

import pytest
from spoilt import GOOD, told

# (name, text in GOOD, what stands there instead, the message)
MISTAKES = [
    (
        "misspelt top-level key",
        "chains:",
        "chain:",
        "22: unknown key 'chain'; did you mean 'chains'?",
    ),
    (
        "key of another section",
        "{type: lidar, topic: /top}",
        "{type: lidar, wcet: 3 ms}",
        (
            "7: sources.top: unknown key 'wcet'; known are type, topic, info, rate, frame, "
            "clock_offset, latency, run, params, guard"
        ),
    ),
    (
        "missing pipeline",
        "pipeline: demo\n",
        "",
        "1: 'pipeline' is missing; add it, such as \"pipeline: my_pipeline\"",
    ),
    (
        "missing source type",
        "{type: lidar, topic: /top}",
        "{topic: /top}",
        "7: sources.top: 'type' is missing; add it, such as \"type: lidar\"",
    ),
    (
        "duplicate stage",
        "  fuse:",
        "  detect:",
        "15: stages: key 'detect' is given twice, first in line 9",
    ),
    (
        "rate without unit",
        "rate: 10 Hz",
        "rate: 10",
        "6: sources.cam.rate: expected a rate with its unit, such as \"10 Hz\", found '10'",
    ),
    (
        "rate of zero",
        "rate: 10 Hz",
        "rate: 0 Hz",
        "6: sources.cam.rate: expected a rate above zero, found '0 Hz'",
    ),
    (
        "source period of zero",
        "rate: 10 Hz",
        "rate: 0 ms",
        "6: sources.cam.rate: expected a period above 0, found 0 ns",
    ),
    (
        "optional trigger",
        "    trigger: objects",
        "    trigger: cloud",
        "18: stages.fuse.inputs.cloud: the trigger cannot be optional",
    ),
    (
        "unknown source",
        "inputs: {image: cam}",
        "inputs: {image: cma}",
        "12: stages.detect.inputs.image: no source or stage named 'cma'; did you mean 'cam'?",
    ),
    (
        "unknown source in the long form",
        "{from: top, optional: true}",
        "{from: tip, optional: true}",
        "18: stages.fuse.inputs.cloud: no source or stage named 'tip'; did you mean 'top'?",
    ),
    (
        "long form without from",
        "{from: top, optional: true}",
        "{optional: true}",
        "18: stages.fuse.inputs.cloud: 'from' is missing; add it, such as \"from: front_camera\"",
    ),
    (
        "an input that is no parameter",
        "inputs: {image: cam}",
        "inputs: {class: cam}",
        "12: stages.detect.inputs.class: an input is a parameter of the stage; expected a Python name",
    ),
    (
        "max_age of zero",
        "optional: true}",
        "max_age: 0 ms}",
        "18: stages.fuse.inputs.cloud.max_age: expected more than 0, found 0 ns",
    ),
    (
        "inputs as a list",
        "inputs: {image: cam}",
        "inputs: [cam]",
        "12: stages.detect.inputs: expected inputs by name, found a list",
    ),
    (
        "unknown policy",
        "policy: edf",
        "policy: edff",
        "2: policy: expected one of edf, rm, dm, fp, llf, fifo, table, found 'edff'; did you mean 'edf'?",
    ),
    (
        "yes for true",
        "optional: true",
        "optional: yes",
        "18: stages.fuse.inputs.cloud.optional: 'yes' is not used; write true, or put it in quotes if it is text",
    ),
    (
        "off for false",
        "optional: true",
        "optional: off",
        "18: stages.fuse.inputs.cloud.optional: 'off' is not used; write false, or put it in quotes if it is text",
    ),
    (
        "a quoted boolean",
        "optional: true",
        'optional: "true"',
        "18: stages.fuse.inputs.cloud.optional: expected true or false, found 'true'",
    ),
    (
        "a word as slots",
        "slots: 2",
        "slots: two",
        "4: devices.cpu.slots: expected a whole number, found 'two'",
    ),
    (
        "a fraction as slots",
        "slots: 2",
        "slots: 1.5",
        "4: devices.cpu.slots: expected a whole number, found '1.5'",
    ),
    ("no slots", "slots: 2", "slots: 0", "4: devices.cpu.slots: expected at least 1 slot, found 0"),
    (
        "no threads",
        "slots: 2",
        "threads: 0",
        "4: devices.cpu.threads: expected at least 1 thread, found 0",
    ),
    (
        "preemptive on a real device",
        "slots: 2",
        "preemptive: true",
        "4: devices.cpu.preemptive: only a device of type 'simulated' can be preemptive; drop 'preemptive'",
    ),
    (
        "a supply on several slots",
        "slots: 2",
        "slots: 2, supply: {budget: 3 ms, every: 5 ms}",
        "4: devices.cpu.slots: a device with a supply has one slot, found 2; give each a device",
    ),
    (
        "a supply without a period",
        "slots: 2",
        "supply: {budget: 3 ms}",
        "4: devices.cpu.supply: 'every' is missing; add it, such as \"every: 5 ms\"",
    ),
    (
        "a supply of nothing",
        "slots: 2",
        "supply: {budget: 0 ms, every: 5 ms}",
        "4: devices.cpu.supply.budget: expected a budget above 0, found 0 ns",
    ),
    (
        "a supply of more than there is",
        "slots: 2",
        "supply: {budget: 6 ms, every: 5 ms}",
        "4: devices.cpu.supply.budget: expected a budget of at most 'every', 5 ms, found 6 ms",
    ),
    (
        "a supply once in a lifetime",
        "slots: 2",
        "supply: {budget: 1 s, every: 400000000 s}",
        "4: devices.cpu.supply.every: expected at most 10 years, found 4e+08 s",
    ),
    (
        "a supply that begins too late in its period",
        "slots: 2",
        "supply: {budget: 3 ms, every: 5 ms, starts: [0 ms, 2.5 ms]}",
        "4: devices.cpu.supply.starts: expected a start from 0 to 2 ms, so that the budget ends with its period, found 2.5 ms",
    ),
    (
        "a supply that never begins",
        "slots: 2",
        "supply: {budget: 3 ms, every: 5 ms, starts: []}",
        "4: devices.cpu.supply.starts: expected one start at least, found none",
    ),
    (
        "unknown device type",
        "type: cpu",
        "type: gpu",
        "4: devices.cpu.type: expected cpu, simulated or a GPU such as cuda:0, found 'gpu'",
    ),
    (
        "unknown fallback",
        "slots: 2",
        "fallback: cpv",
        "4: devices.cpu.fallback: no device named 'cpv'; did you mean 'cpu'?",
    ),
    (
        "its own fallback",
        "slots: 2",
        "fallback: cpu",
        "4: devices.cpu.fallback: a device cannot fall back on itself",
    ),
    (
        "unknown source type",
        "type: lidar",
        "type: lider",
        "7: sources.top.type: expected one of camera, lidar, radar, imu, gnss, can, found 'lider'; did you mean 'lidar'?",
    ),
    (
        "camera info of a lidar",
        "topic: /top",
        "info: /top",
        "7: sources.top.info: only a camera has 'info'; remove it",
    ),
    (
        "a number as topic",
        "topic: /top",
        "topic: 7",
        "7: sources.top.topic: expected text of one line, found '7'",
    ),
    (
        "sync of one input",
        "inputs: {image: cam}",
        "inputs: {image: cam}\n    sync: {tolerance: 5 ms, timeout: 10 ms}",
        "13: stages.detect.sync: 'sync' needs two inputs or more",
    ),
    (
        "sync without timeout",
        "    trigger: objects",
        "    sync: {tolerance: 5 ms}",
        "19: stages.fuse.sync: 'timeout' is missing; add it, such as \"timeout: 40 ms\"",
    ),
    (
        "a chain that is not connected",
        "[cam, detect, fuse]",
        "[cam, fuse]",
        "23: chains.see.path: 'fuse' does not read 'cam'",
    ),
    (
        "a chain that starts inside",
        "[cam, detect, fuse]",
        "[detect, fuse]",
        "23: chains.see.path: a path starts at a source or a timer stage; 'detect' has inputs",
    ),
    (
        "a chain of one",
        "[cam, detect, fuse]",
        "[cam]",
        "23: chains.see.path: a path has a source and a stage at least",
    ),
    (
        "an unknown name in a chain",
        "[cam, detect, fuse]",
        "[cam, detct, fuse]",
        "23: chains.see.path: no source or stage named 'detct'; did you mean 'detect'?",
    ),
    (
        "a chain as text",
        "[cam, detect, fuse]",
        "cam",
        "23: chains.see.path: expected a list of names, found 'cam'",
    ),
    (
        "a number in a chain",
        "[cam, detect, fuse]",
        "[cam, 3]",
        "23: chains.see.path.1: expected a name of letters, digits, '_' and '-', found '3'",
    ),
    (
        "a promise of zero",
        "reaction: 100 ms",
        "age: 0 s",
        "23: chains.see.age: expected more than 0, found 0 ns",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [pytest.param(*mistake[1:], id=mistake[0]) for mistake in MISTAKES],
)
def test_a_mistake_is_told_in_one_line(old, new, message):
    assert GOOD.count(old) >= 1
    assert told(GOOD.replace(old, new, 1)) == f"p.yaml:{message}"
