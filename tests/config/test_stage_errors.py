"""Each kind of mistake in a stage's keys gives one line: place, key, what is wrong, remedy."""

# ruff: noqa: E501 - a message is one line

from __future__ import annotations

import pytest
from spoilt import GOOD, told

from avrt.config.pipeline import parse

# (name, text in GOOD, what stands there instead, the message)
MISTAKES = [
    (
        "unknown key",
        "    wcet: 5 ms\n    deadline: 20 ms\n  fuse",
        "    wcte: 5 ms\n    deadline: 20 ms\n  fuse",
        "13: stages.detect: unknown key 'wcte'; did you mean 'wcet'?",
    ),
    (
        "missing wcet",
        "    wcet: 5 ms\n    deadline: 20 ms\n  fuse",
        "    deadline: 20 ms\n  fuse",
        "9: stages.detect: 'wcet' is missing; add it, such as \"wcet: 25 ms\"",
    ),
    (
        "duplicate key",
        "    device: cpu\n    inputs: {image: cam}",
        "    device: cpu\n    run: other:Detector\n    inputs: {image: cam}",
        "12: stages.detect: key 'run' is given twice, first in line 10",
    ),
    (
        "missing unit",
        "wcet: 5 ms\n    deadline: 20 ms\n  fuse",
        "wcet: 25\n    deadline: 20 ms\n  fuse",
        "13: stages.detect.wcet: expected a duration with its unit, such as \"25 ms\", found '25'",
    ),
    (
        "unknown unit",
        "wcet: 5 ms\n    deadline: 20 ms\n  fuse",
        "wcet: 5 min\n    deadline: 20 ms\n  fuse",
        "13: stages.detect.wcet: expected a duration in s, ms, us or ns, such as \"25 ms\", found '5 min'",
    ),
    (
        "negative duration",
        "deadline: 20 ms\n  fuse",
        "deadline: -20 ms\n  fuse",
        "14: stages.detect.deadline: expected more than 0, found -20 ms",
    ),
    (
        "a list for a duration",
        "deadline: 20 ms\n  fuse",
        "deadline: [20 ms]\n  fuse",
        '14: stages.detect.deadline: expected a duration with its unit, such as "25 ms", found a list',
    ),
    (
        "no value",
        "deadline: 20 ms\n  fuse",
        "deadline:\n  fuse",
        '14: stages.detect.deadline: expected a duration with its unit, such as "25 ms", found nothing',
    ),
    (
        "too long a time",
        "deadline: 20 ms\n  fuse",
        "deadline: 99999999999 s\n  fuse",
        "14: stages.detect.deadline: expected at most 292 years, which 64 bits of ns hold, found '99999999999 s'",
    ),
    (
        "period of zero",
        "    wcet: 5 ms\n    deadline: 20 ms\nchains",
        "    wcet: 5 ms\n    deadline: 20 ms\n  beat: {device: cpu, period: 0 ms, wcet: 1 ms, deadline: 1 ms}\nchains",
        "22: stages.beat.period: expected more than 0, found 0 ns",
    ),
    (
        "period and trigger",
        "    trigger: objects",
        "    trigger: objects\n    period: 10 ms",
        "15: stages.fuse: give one of 'period', 'trigger' and 'sync', not several",
    ),
    (
        "several inputs without a trigger",
        "    trigger: objects\n",
        "",
        "15: stages.fuse: several inputs (objects, cloud); say which one is the 'trigger', or 'sync'",
    ),
    (
        "nothing releases it",
        "    inputs: {image: cam}\n",
        "",
        "9: stages.detect: nothing releases it; give 'inputs' or a 'period'",
    ),
    (
        "wrong trigger",
        "    trigger: objects",
        "    trigger: object",
        "19: stages.fuse.trigger: no input named 'object'; did you mean 'objects'?",
    ),
    (
        "unknown device",
        "device: cpu\n    inputs: {image",
        "device: gpu\n    inputs: {image",
        "11: stages.detect.device: no device named 'gpu'; did you mean 'cpu'?",
    ),
    (
        "cycle",
        "inputs: {image: cam}",
        "inputs: {image: fuse}",
        "9: stages.detect: stages feed each other in a cycle: detect -> fuse -> detect",
    ),
    (
        "a stage named like a source",
        "  fuse:",
        "  cam:",
        "15: stages.cam: a source has this name too; rename one",
    ),
    (
        "no priority for fixed priority",
        "policy: edf",
        "policy: fp",
        "9: stages.detect: policy fp needs a 'priority' on every stage (1 is the most urgent)",
    ),
    (
        "bad run",
        "run: my.stages:Detector",
        "run: my.stages.Detector",
        '10: stages.detect.run: expected "package.module:Name" or "file.py:Name", found \'my.stages.Detector\'',
    ),
    (
        "too short a scrub",
        "    trigger: objects",
        "    trigger: objects\n    scrub: 100 ms",
        "20: stages.fuse.scrub: expected 220 ms or more, since one job finds and the next one tells, found 100 ms",
    ),
    (
        "malformed m of k",
        "    trigger: objects",
        "    trigger: objects\n    miss_at_most: 1/10",
        "20: stages.fuse.miss_at_most: expected misses and jobs, such as \"1 of 10\", found '1/10'",
    ),
    (
        "impossible m of k",
        "    trigger: objects",
        "    trigger: objects\n    miss_at_most: 10 of 10",
        "20: stages.fuse.miss_at_most: expected fewer misses than jobs, found 10 of 10",
    ),
    (
        "hard and abort",
        "    trigger: objects",
        "    trigger: objects\n    guarantee: hard\n    on_miss: abort",
        "21: stages.fuse.on_miss: a stage with guarantee 'hard' is never aborted; choose 'firm', or drop 'abort'",
    ),
    (
        "hard and abort on overrun",
        "    trigger: objects",
        "    trigger: objects\n    on_overrun: abort\n    guarantee: hard",
        "20: stages.fuse.on_overrun: a stage with guarantee 'hard' is never aborted; choose 'firm', or drop 'abort'",
    ),
    (
        "unknown guarantee",
        "    trigger: objects",
        "    trigger: objects\n    guarantee: firmly",
        "20: stages.fuse.guarantee: expected one of hard, firm, soft, best_effort, found 'firmly'; did you mean 'firm'?",
    ),
    (
        "unknown criticality",
        "    trigger: objects",
        "    trigger: objects\n    criticality: ASIL_B",
        "20: stages.fuse.criticality: expected one of QM, ASIL-A, ASIL-B, ASIL-C, ASIL-D, found 'ASIL_B'; did you mean 'ASIL-B'?",
    ),
    (
        "no queue",
        "    trigger: objects",
        "    trigger: objects\n    queue: 0",
        "20: stages.fuse.queue: expected at least 1 waiting job, found 0",
    ),
    (
        "best case above the worst",
        "    trigger: objects",
        "    trigger: objects\n    bcet: 6 ms",
        "20: stages.fuse.bcet: the best case is above the wcet",
    ),
    (
        "negative jitter",
        "    trigger: objects",
        "    trigger: objects\n    jitter: -1 us",
        "20: stages.fuse.jitter: expected 0 or more, found -1 us",
    ),
    (
        "negative tolerance",
        "    trigger: objects",
        "    sync: {tolerance: -5 ms, timeout: 1 ms}",
        "19: stages.fuse.sync.tolerance: expected 0 or more, found -5 ms",
    ),
    (
        "params that are no mapping",
        "    trigger: objects",
        "    trigger: objects\n    params: 3",
        "20: stages.fuse.params: expected parameters by name, found '3'",
    ),
    (
        "infinite parameter",
        "    trigger: objects",
        "    trigger: objects\n    params: {far: .inf}",
        "20: stages.fuse.params.far: expected a finite number, found '.inf'",
    ),
    (
        "no segment",
        "    trigger: objects",
        "    trigger: objects\n    segments: []",
        "20: stages.fuse.segments: expected one segment at least, found none",
    ),
    (
        "a segment without its device",
        "    trigger: objects",
        "    trigger: objects\n    segments: [{wcet: 1 ms}]",
        "20: stages.fuse.segments.0: 'device' is missing; add it, such as \"device: gpu\"",
    ),
    (
        "a stage name with a blank",
        "  fuse:",
        "  fuse it:",
        "15: stages.fuse it: expected a name of letters, digits, '_' and '-'",
    ),
]
LATER = [
    ("    trigger: objects", "    partition: p", "19: stages.fuse.partition: a partition"),
]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [pytest.param(*mistake[1:], id=mistake[0]) for mistake in MISTAKES],
)
def test_a_mistake_is_told_in_one_line(old, new, message):
    assert GOOD.count(old) >= 1
    assert told(GOOD.replace(old, new, 1)) == f"p.yaml:{message}"


@pytest.mark.parametrize(("old", "new", "message"), LATER)
def test_what_a_later_version_brings_is_told(old, new, message):
    line = told(GOOD.replace(old, new))
    assert line.startswith(f"p.yaml:{message}")
    assert line.endswith("is not available in this version; remove it")


def test_the_unchanged_file_is_right():
    assert parse(GOOD, "p.yaml").spec.name == "demo"
