"""The ladder at work: what goes wrong in a run, and at which level it goes on, in every driver."""

from functools import partial
from itertools import pairwise

import pytest

import avrt
from avrt.analysis.bounds import bounds
from avrt.config.scenario import LoadedScenario
from avrt.drivers import supervision
from avrt.drivers.execution import RecordedTiming
from avrt.drivers.recorded import prepare
from avrt.drivers.recording import read_recorded
from avrt.drivers.scenario import run_scenario
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.drivers.supervision import supervisor_of
from avrt.drivers.verify import verify
from avrt.drivers.whatif import repeat
from avrt.errors import SpecError
from avrt.model.events import DeviceBack, DeviceLost, StreamLost
from avrt.model.records import ModeRecord
from avrt.model.scenario import OverheadSpec
from avrt.units import NS_PER_MS, NS_PER_S


class Full(avrt.Stage):
    """Counts its messages, and says which variant it is."""

    def __init__(self, title="full"):
        self.title, self.count, self.warmed = title, 0, 0

    def warm(self):
        self.warmed += 1

    def process(self, cloud):
        self.count += 1
        assert self.warmed == 1, cloud
        return [self.title, self.count]

    def freeze(self):
        return self.count

    def thaw(self, state):
        self.count = state


KEYS = {
    "inputs": {"cloud": "lidar"},
    "wcet": "90 ms",
    "deadline": "95 ms",
    "criticality": "ASIL-B",
    "variants": {"light": {"params": {"title": "light"}, "wcet": "10 ms"}},
}
LEVELS = {
    "full": {},
    "light": {"stages": {"see": {"variant": "light"}}},
    "stop": {"stages": {"see": {"variant": "light", "every": 2}}},
}


@pytest.fixture
def laddered(make_pipeline):
    """Return a function that makes a pipeline of one stage with a ladder."""

    def make(*, target=Full, levels=LEVELS, **keys):
        pipeline = make_pipeline(slots=1, ladder={"levels": levels, "max_age": "1 s"})
        pipeline.add(target, name="see", **KEYS | keys)
        return pipeline

    return make


@pytest.fixture
def modes(tmp_path, read_records):
    """Return a function that reads the levels of a run, and why each was entered."""

    def read():
        found = read_records(tmp_path / "run.mcap", ModeRecord)
        return [(m.mode, m.cause, m.at_ns // NS_PER_MS) for m in found]

    return read


def test_a_pipeline_whose_jobs_take_too_long_goes_on_with_less(
    laddered, make_drive, modes, tmp_path
):
    """Every job takes 110 ms of 100: it misses three of ten, and a second later it is too much."""
    out = tmp_path / "run.mcap"
    pipeline = laddered(wcet="110 ms", deadline="100 ms")
    pipeline.replay(make_drive(80), out=out)
    assert [mode for mode, _, _ in modes()] == ["light"]
    (_, cause, at_ms) = modes()[0]
    assert cause == "overload"
    assert 1000 < at_ms < 2000
    seen = avrt.read_outputs(out, "see")
    titles = [message.payload[0] for message in seen]
    assert titles == sorted(titles)
    assert set(titles) == {"full", "light"}
    counts = [message.payload[1] for message in seen]
    assert counts == list(range(1, len(counts) + 1))  # the variant takes over the state
    assert verify(out).equal
    recorded = read_recorded(out)
    assert repeat(recorded, recorded.spec).digest == recorded.digest


def test_a_run_that_is_never_in_trouble_stays_where_it_is(laddered, make_drive, modes, tmp_path):
    laddered().replay(make_drive(40), out=tmp_path / "run.mcap")
    assert modes() == []


def test_a_variant_of_another_class_begins_with_its_own_first_state(laddered, make_drive, tmp_path):
    keys = {"run": "replicas:Counting", "wcet": "10 ms"}
    pipeline = laddered(wcet="110 ms", deadline="100 ms", variants={"light": keys})
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(40), out=out)
    payloads = [message.payload for message in avrt.read_outputs(out, "see")]
    counts = [payload for payload in payloads if isinstance(payload, int)]
    assert counts == list(range(1, len(counts) + 1))
    assert isinstance(payloads[0], tuple)
    assert isinstance(payloads[-1], int)


def test_the_wall_clock_decides_by_the_same_rules(laddered, make_drive, modes, tmp_path):
    pipeline = laddered(deadline="1 us")  # whatever it takes, that is too long
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(40), out=out, clock="wall", rate=20.0, force=True)
    assert [mode for mode, _, _ in modes()][:2] == ["light", "stop"]
    assert verify(out).equal
    recorded = read_recorded(out)
    assert repeat(recorded, recorded.spec).digest == recorded.digest


def test_recorded_times_of_another_variant_count_in_proportion(laddered, make_drive, tmp_path):
    """Jobs 5 and 35 ran as declared and as `light`, which may take an eleventh."""
    out = tmp_path / "run.mcap"
    pipeline = laddered(wcet="110 ms", deadline="100 ms")
    pipeline.replay(make_drive(40), out=out)
    timing = RecordedTiming(pipeline.spec, out)
    costs = [(timing.cost_ns("see", i), timing.cost_ns("see", i, "light")) for i in (5, 35)]
    assert costs == [(110 * NS_PER_MS, 10 * NS_PER_MS)] * 2


# A device that flaps


def spec_of_gpu():
    pipeline = avrt.Pipeline(
        "p",
        devices={"gpu": {"type": "simulated"}, "cpu": {"type": "cpu"}},
        ladder={
            "devices": ["gpu"],
            "levels": {
                "gpu": {"devices": 1},
                "cpu": {"stages": {"see": {"variant": "light", "rate": "2 Hz"}}},
                "stop": {"without": ["see"]},
            },
            "critical": ["see"],
            "max_age": "3 s",
        },
    )
    light = {"device": "cpu", "wcet": "50 ms"}
    pipeline.add(
        lambda: 0,
        name="see",
        device="gpu",
        period="200 ms",
        wcet="10 ms",
        deadline="100 ms",
        variants={"light": light},
    )
    pipeline.add(lambda: 0, name="beat", device="cpu", period="1 s", wcet="1 ms", deadline="1 s")
    return pipeline.spec


def flapping(up_s, down_s, until_s):
    """Yield the losses and returns of a device that is there for `up_s`, then away."""
    at_ns = 0
    while at_ns < until_s * NS_PER_S:
        at_ns += up_s * NS_PER_S
        yield at_ns, DeviceLost("gpu")
        at_ns += down_s * NS_PER_S
        yield at_ns, DeviceBack("gpu")


@pytest.mark.slow
@pytest.mark.parametrize(("up_s", "down_s", "changes"), [(6, 1, 11), (39, 1, 23)])
def test_a_device_that_flaps_for_half_an_hour_ends_up_unused(up_s, down_s, changes):
    run = simulate(
        spec_of_gpu(), until_ns=1800 * NS_PER_S, feed=flapping(up_s, down_s, 1800), digest=False
    )
    entered = [r for r in run.records if isinstance(r, ModeRecord)]
    assert len(entered) == changes
    assert {r.mode for r in entered} == {"gpu", "cpu"}


def test_a_lost_device_is_left_at_the_next_tick_and_taken_back_after_a_while():
    feed = [(1_003 * NS_PER_MS, DeviceLost("gpu")), (1_500 * NS_PER_MS, DeviceBack("gpu"))]
    run = simulate(spec_of_gpu(), until_ns=20 * NS_PER_S, feed=feed)
    entered = [
        (r.mode, r.cause, r.at_ns // NS_PER_MS) for r in run.records if isinstance(r, ModeRecord)
    ]
    assert entered == [("cpu", "devices", 1010), ("gpu", "clear", 6510)]
    jobs = [job for job in run.jobs_of("see") if job.outcome == "met"]
    gaps = [b.end_ns - a.end_ns for a, b in pairwise(jobs)]
    assert max(gaps) <= 600 * NS_PER_MS


def test_a_run_without_a_ladder_has_no_supervisor(make_pipeline):
    pipeline = make_pipeline()
    pipeline.add(Full, name="see", **{k: v for k, v in KEYS.items() if k != "variants"})
    assert supervisor_of(pipeline.spec) is None


def test_a_critical_output_that_is_too_old_leads_to_the_last_level():
    spec = spec_of_gpu()
    never = partial(_stuck_from, 20)
    run = simulate(spec, until_ns=20 * NS_PER_S, execution=never)
    (first, *_) = [r for r in run.records if isinstance(r, ModeRecord)]
    last = max(job.end_ns for job in run.jobs_of("see") if job.outcome == "met")
    assert (first.mode, first.cause) in {("cpu", "overload"), ("stop", "failing")}
    assert first.at_ns - last <= 3_010 * NS_PER_MS


def _stuck_from(index, task, job):
    return None if task == "see" and job >= index else 1_000_000


# Orders


SCENARIO = """
scenario: orders
pipeline: p.yaml
duration: 40 s
faults:
  - {at: 3.005 s, order: stop}
  - {at: 8 s, order: reset}
  - {at: 9 s, order: stands}
  - {at: 10 s, order: reset}
"""
PIPELINE = """
pipeline: p
stages:
  see: {period: 100 ms, wcet: 10 ms, deadline: 100 ms, criticality: ASIL-B}
  show: {period: 100 ms, wcet: 10 ms, deadline: 100 ms}
ladder:
  levels:
    full: {}
    stop: {without: [show]}
"""


def test_orders_of_a_scenario_stop_and_reset_the_vehicle(tmp_path):
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    run = run_scenario(prepare(LoadedScenario(tmp_path / "s.yaml").spec), 0)
    entered = [(m.at_ns // NS_PER_MS, m.mode, m.cause) for m in run.figures.modes]
    assert entered == [(3010, "stop", "order"), (15_010, "full", "clear")]


def test_orders_reach_a_live_run(make_pipeline):
    pipeline = make_pipeline(ladder={"levels": {"full": {}, "stop": {"without": ["show"]}}})
    keys = {"period": "10 ms", "wcet": "1 ms", "deadline": "1 s"}
    pipeline.add(lambda: 1, name="see", criticality="ASIL-B", **keys)
    pipeline.add(lambda: 1, name="show", **keys)
    pipeline._sources["lidar"] = {"type": "lidar", "run": "live_sources:Silent"}
    orders = avrt.Orders()
    orders.give("stop")
    report = pipeline.run(duration="150 ms", orders=orders, look=lambda _: orders.give("stands"))
    assert [(m.mode, m.cause) for m in report.summary.figures.modes] == [("stop", "order")]
    with pytest.raises(SpecError, match="no such order 'stp'; did you mean 'stop'"):
        orders.give("stp")


# What was found wrong


MS = NS_PER_MS


def entered_in(run):
    return [(r.mode, r.cause, r.at_ns // MS) for r in run.records if isinstance(r, ModeRecord)]


def made(devices, ladder, **stages):
    """The pipeline of timer stages with a period of 100 ms unless told otherwise."""
    pipeline = avrt.Pipeline("p", devices=devices, ladder={"max_age": "10 s"} | ladder)
    for name, keys in stages.items():
        defaults = {"period": "100 ms", "wcet": "5 ms", "deadline": "100 ms"}
        pipeline.add(lambda: 0, name=name, **defaults | keys)
    return pipeline.spec


def test_gpus_that_are_lost_one_after_the_other_end_what_runs_on_them():
    simulated = {"type": "simulated"}
    variants = {"v0": {"device": "gpu0"}, "v1": {"device": "cpu"}}
    levels = {
        "full": {"devices": 2},
        "half": {"devices": 1, "stages": {"see": {"variant": "v0"}}},
        "low": {"stages": {"see": {"variant": "v1"}}},
    }
    spec = made(
        {"gpu0": simulated, "gpu1": simulated, "cpu": {"type": "cpu"}},
        {"devices": ["gpu0", "gpu1"], "critical": ["see"], "levels": levels},
        see={"device": "gpu1", "wcet": "50 ms", "variants": variants},
    )
    feed = [(1003 * MS, DeviceLost("gpu0")), (1012 * MS, DeviceLost("gpu1"))]
    run = simulate(spec, until_ns=2 * NS_PER_S, feed=feed)
    lost = [(job.index, job.end_ns // MS) for job in run.jobs if job.reason == "lost"]
    assert lost == [(10, 1012)]
    assert entered_in(run) == [("half", "devices", 1010), ("low", "devices", 1020)]


def test_a_stage_that_was_slow_and_is_left_out_does_not_keep_the_run_down():
    without = {"without": ["show"]}
    spec = made(
        {"cpu": {"type": "cpu"}},
        {"critical": ["see"], "levels": {"full": {}, "low": without, "stop": without}},
        see={"wcet": "10 ms", "deadline": "50 ms"},
        show={"wcet": "20 ms"},
    )
    slow = lambda task, job: (300 if task == "show" and job < 15 else 5) * MS  # noqa: E731
    run = simulate(spec, until_ns=30 * NS_PER_S, execution=slow)
    assert [mode for mode, *_ in entered_in(run)] == ["low", "full"]


def test_room_above_counts_what_falls_back_on_the_devices_that_are_left():
    gpus = {"gpu0": {"type": "simulated", "fallback": "gpu1"}, "gpu1": {"type": "simulated"}}
    levels = {
        "full": {"devices": 1},
        "low": {"devices": 1, "without": ["a"]},
        "stop": {"without": ["a"]},
    }
    keys = {"wcet": "55 ms", "queue": 1, "on_miss": "skip_next"}
    spec = made(
        gpus,
        {"devices": ["gpu0", "gpu1"], "critical": ["b"], "levels": levels},
        a={"device": "gpu0", **keys},
        b={"device": "gpu1", "deadline": "60 ms", **keys},
    )
    run = simulate(spec, until_ns=60 * NS_PER_S, feed=[(NS_PER_S, DeviceLost("gpu0"))])
    assert [mode for mode, *_ in entered_in(run)] == ["low"]


def test_a_stream_with_the_name_of_a_device_is_none():
    spec = made(
        {"cam": {"type": "simulated"}, "cpu": {"type": "cpu"}},
        {
            "devices": ["cam"],
            "critical": ["beat"],
            "levels": {"full": {"devices": 1}, "low": {"without": ["cam"]}},
        },
        cam={"device": "cpu"},
        beat={"device": "cpu"},
    )
    run = simulate(spec, until_ns=2 * NS_PER_S, feed=[(500 * MS, StreamLost("cam"))])
    assert entered_in(run) == []


def test_bounds_with_overheads_are_those_of_the_variant_of_the_first_level():
    levels = {"full": {"stages": {"see": {"variant": "big"}}}, "stop": {}}
    spec = made(
        {"cpu": {"type": "simulated"}},
        {"critical": ["see"], "levels": levels},
        see={"deadline": "90 ms", "variants": {"big": {"wcet": "10 ms"}}},
    )
    costs = {"cpu": OverheadSpec(release_ns=MS, decision_ns=MS, switch_ns=MS, launch_ns=MS)}
    run = simulate(spec, until_ns=NS_PER_S, overheads=costs)
    longest_ns = max(job.response_ns for job in run.jobs)
    assert longest_ns > 10 * MS
    assert longest_ns <= bounds(spec, costs).stages["see"].ns


def test_a_pipeline_too_large_to_analyse_begins_at_once(monkeypatch):
    monkeypatch.setattr(supervision, "analyse", lambda _: pytest.fail("it is too large"))
    monkeypatch.setattr(supervision, "is_too_large", lambda _: True)
    assert supervisor_of(spec_of_gpu()) is not None


# What is refused


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ({"full": {}}, "expected 2 to 16 levels, found 1"),
        ({"full": {"devices": 1}, "stop": {}}, "expected 0 to 0 devices"),
        ({"full": {}, "stop": {"without": ["sea"]}}, "no stage named 'sea'; did you mean 'see'?"),
        ({"full": {}, "stop": {"without": ["see", "beat"]}}, "it leaves out every stage"),
        ({"full": {}, "stop": {"stages": {"see": {"variant": "ligt"}}}}, "did you mean 'light'?"),
        ({"full": {}, "stop": {"stages": {"see": {"rate": "2 Hz"}}}}, "say 'every'"),
        ({"full": {}, "stop": {"stages": {"see": {"every": 0}}}}, "expected 1 or more, found 0"),
        ({"full": {}, "stop": {"stages": {"beat": {"rate": "-5 ms"}}}}, "more than 0, found -5 ms"),
        ({"full": {}, "stop": {"stages": {"beat": {"rate": "0 ms"}}}}, "more than 0, found 0 ns"),
        (
            {"full": {}, "stop": {"stages": {"see": {"copies": 2}}}},
            "only a stage with 'redundancy'",
        ),
    ],
)
def test_levels_that_mean_nothing_are_refused(laddered, levels, told):
    pipeline = laddered(levels=levels)
    pipeline.add(lambda: 0, name="beat", period="100 ms", wcet="1 ms", deadline="50 ms")
    with pytest.raises(SpecError, match=told.replace("?", r"\?")):
        pipeline.spec  # noqa: B018 - it is what is asked for


def test_a_level_whose_outputs_would_always_be_too_old_is_refused(laddered):
    levels = {"full": {}, "slow": {"stages": {"see": {"every": 20}}}, "stop": {"without": ["see"]}}
    pipeline = laddered(levels=levels)
    pipeline.add(lambda: 0, name="beat", period="100 ms", wcet="1 ms", deadline="50 ms")
    with pytest.raises(SpecError, match="the 2 s from one output of 'see' to the next at level"):
        pipeline.spec  # noqa: B018 - it is what is asked for


def test_a_device_that_is_counted_twice_is_refused():
    levels = {"full": {"devices": 2}, "low": {}}
    with pytest.raises(SpecError, match="given twice"):
        made({"gpu": {"type": "cpu"}}, {"devices": ["gpu", "gpu"], "levels": levels,
                                        "critical": ["beat"]}, beat={})  # fmt: skip


def test_periodic_sources_feed_a_simulation_under_a_ladder(laddered):
    spec = laddered(wcet="110 ms", deadline="100 ms").spec
    until_ns = 8 * NS_PER_S
    run = simulate(spec, until_ns=until_ns, feed=periodic_arrivals(spec, until_ns))
    entered = [record.mode for record in run.records if isinstance(record, ModeRecord)]
    assert entered[:1] == ["light"]
    late = [job for job in run.jobs if job.release_ns > 4 * NS_PER_S]
    assert {job.outcome for job in late} == {"met"}


# One copy of three


def spec_of_copies():
    pipeline = avrt.Pipeline(
        "p",
        devices={"cpu": {"type": "cpu", "slots": 3}},
        ladder={"levels": {"full": {}, "stop": {"without": ["beat"]}}, "critical": ["see"]},
    )
    copies = {"copies": 3, "one_domain": True}
    keys = {"period": "100 ms", "wcet": "10 ms", "deadline": "50 ms"}
    pipeline.add(lambda: 0, name="see", redundancy=copies, **keys)
    pipeline.add(lambda: 0, name="beat", device="cpu", **keys)
    return pipeline.spec


@pytest.mark.parametrize(
    ("late", "levels"), [({"see.0"}, []), ({"see.2"}, []), ({"see.0", "see.1"}, ["stop"])]
)
@pytest.mark.parametrize("cost_ns", [60 * NS_PER_MS, None])
def test_a_copy_that_others_outvote_in_time_leaves_the_level_as_it_is(late, levels, cost_ns):
    """The voter has an output of the two others at its deadline: nothing is late but one copy."""

    def execution(task, index):
        return cost_ns if task in late and index >= 5 else 10 * NS_PER_MS

    run = simulate(spec_of_copies(), until_ns=6 * NS_PER_S, execution=execution)
    entered = [record.mode for record in run.records if isinstance(record, ModeRecord)]
    assert entered == levels


@pytest.mark.parametrize("lost", [(), ("see.0",)])
def test_a_single_copy_that_is_left_at_a_level_is_judged_by_its_own_jobs(lost):
    """It is not voted on there: its outputs are its own, and its misses count at once."""
    pipeline = avrt.Pipeline(
        "p",
        devices={"cpu": {"type": "cpu", "slots": 3}, "gpu": {"type": "simulated"}},
        ladder={
            "devices": ["gpu"],
            "levels": {
                "full": {"devices": 1},
                "one": {"stages": {"see": {"copies": 1}}},
                "stop": {"without": ["beat"]},
            },
            "critical": ["see"],
        },
    )
    keys = {"period": "100 ms", "wcet": "10 ms", "deadline": "50 ms"}
    copies = {"copies": 3, "one_domain": True}
    pipeline.add(lambda: 0, name="see", device="cpu", redundancy=copies, **keys)
    pipeline.add(lambda: 0, name="beat", device="cpu", **keys)

    def execution(task, index):
        return 60 * NS_PER_MS if task in lost and index >= 20 else 10 * NS_PER_MS

    run = simulate(
        pipeline.spec,
        until_ns=4 * NS_PER_S,
        execution=execution,
        feed=[(NS_PER_S, DeviceLost("gpu"))],
    )
    entered = [(record.mode, record.cause) for record in run.records if type(record) is ModeRecord]
    assert entered == [("one", "devices"), *([("stop", "overload")] if lost else [])]
