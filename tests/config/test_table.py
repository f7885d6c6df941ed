"""A table in the pipeline file: how it reads, and what would make it meaningless."""

from dataclasses import replace

import pytest

from avrt.config.pipeline import parse
from avrt.errors import SpecError
from avrt.model.codec import decode_pipeline, encode, from_json, to_json
from avrt.model.graph import check
from avrt.model.spec import TableRow, TableSpec

GOOD = """\
pipeline: demo
policy: table
table:
  cycle: 100 ms
  starts:
    beat: [0 ms, 50 ms]
    slow: [10 ms]
stages:
  beat: {period: 50 ms, wcet: 2 ms, deadline: 10 ms}
  slow: {period: 100 ms, wcet: 20 ms, deadline: 90 ms}
"""
MS = 1_000_000


def test_starts_are_read_by_stage_in_the_order_of_the_file():
    spec = parse(GOOD, "p.yaml").spec
    rows = (
        TableRow(task="beat", starts_ns=(0, 50 * MS)),
        TableRow(task="slow", starts_ns=(10 * MS,)),
    )
    assert spec.table == TableSpec(cycle_ns=100 * MS, rows=rows)
    assert decode_pipeline(from_json(to_json(encode(spec)))) == spec


def test_a_record_made_before_there_were_tables_still_reads():
    head, _, stages = GOOD.partition("policy: table")
    spec = parse(head + stages[stages.index("stages:") :], "p.yaml").spec
    name, fields = encode(spec)
    del fields["table"]
    assert decode_pipeline([name, fields]) == spec


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("policy: table", "policy: rm", "3: table: policy rm executes no table"),
        ("  cycle: 100 ms\n", "", "3: table: 'cycle' is missing"),
        ("cycle: 100 ms", "cycle: 0 s", "4: table.cycle: expected more than 0 and at most a day"),
        ("[10 ms]", "10 ms", "7: table.starts.slow: expected a list of starts"),
        ("[10 ms]", "[10]", "7: table.starts.slow.0: expected a duration"),
        ("[10 ms]", "[]", "7: table.starts.slow: expected one start at least, found none"),
        ("[10 ms]", "[-1 ms]", "7: table.starts.slow: the start at -1 ms is not within the cycle"),
        ("[10 ms]", "[100 ms]", "7: table.starts.slow: the start at 100 ms is not within the"),
        ("[0 ms, 50 ms]", "[0 ms, 0 ms]", "6: table.starts.beat: expected ascending starts, found"),
        ("    slow: [10 ms]\n", "", "5: table.starts: 'slow' has no starts and would never run"),
        ("    slow: [10", "    slaw: [10", "7: table.starts.slaw: no stage named 'slaw'; did you"),
        ("  starts:", "  start:", "5: table: unknown key 'start'; did you mean 'starts'?"),
    ],
)
def test_a_mistake_is_told_with_its_line(old, new, message):
    assert GOOD.count(old) == 1
    with pytest.raises(SpecError) as caught:
        parse(GOOD.replace(old, new), "p.yaml")
    assert str(caught.value).startswith(f"p.yaml:{message}")


def test_what_cannot_be_interrupted_has_no_preemptive_device():
    devices = "devices: {cpu: {type: simulated, preemptive: true}}\nstages:"
    with pytest.raises(SpecError, match=r"p.yaml:8: devices.cpu.preemptive: what a table starts"):
        parse(GOOD.replace("stages:", devices), "p.yaml")


def test_what_is_not_always_there_runs_no_table():
    devices = "devices: {cpu: {supply: {budget: 1 ms, every: 5 ms}}}\nstages:"
    with pytest.raises(SpecError, match=r"p.yaml:8: devices.cpu.supply: what a table starts"):
        parse(GOOD.replace("stages:", devices), "p.yaml")


def test_segments_are_refused():
    parts = "segments: [{device: cpu, wcet: 2 ms}], period: 50 ms, deadline: 10 ms}"
    with pytest.raises(SpecError, match=r"stages.beat.segments: a table starts whole jobs"):
        parse(GOOD.replace("period: 50 ms, wcet: 2 ms, deadline: 10 ms}", parts), "p.yaml")


def test_a_row_given_twice_from_python_is_refused():
    spec = parse(GOOD, "p.yaml").spec
    rows = (*spec.table.rows, spec.table.rows[0])
    with pytest.raises(SpecError, match=r"table.starts.beat: given twice"):
        check(replace(spec, table=replace(spec.table, rows=rows)))
