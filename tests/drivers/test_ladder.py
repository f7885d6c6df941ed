"""The ladder at work: what goes wrong in a run, and at which level it goes on, in every driver."""

from functools import partial
from itertools import pairwise

import pytest

import avrt
from avrt.drivers.recording import read_recorded
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.drivers.supervision import supervisor_of
from avrt.drivers.verify import verify
from avrt.drivers.whatif import repeat
from avrt.errors import SpecError
from avrt.model.events import DeviceBack, DeviceLost
from avrt.model.records import ModeRecord
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


# What is refused


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ({"full": {}}, "expected 2 to 16 levels, found 1"),
        ({"full": {"devices": 1}, "stop": {}}, "expected 0 to 0 devices"),
        ({"full": {}, "stop": {"without": ["sea"]}}, "no stage named 'sea'; did you mean 'see'?"),
        ({"full": {}, "stop": {"without": ["see"]}}, "it leaves out every stage"),
        ({"full": {}, "stop": {"stages": {"see": {"variant": "ligt"}}}}, "did you mean 'light'?"),
        ({"full": {}, "stop": {"stages": {"see": {"rate": "2 Hz"}}}}, "say 'every'"),
        ({"full": {}, "stop": {"stages": {"see": {"every": 0}}}}, "expected 1 or more, found 0"),
    ],
)
def test_levels_that_mean_nothing_are_refused(laddered, levels, told):
    with pytest.raises(SpecError, match=told.replace("?", r"\?")):
        laddered(levels=levels).spec  # noqa: B018 - it is what is asked for


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
