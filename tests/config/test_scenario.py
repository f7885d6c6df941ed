"""Scenario files: what they mean, and what is said of wrong ones."""

from fractions import Fraction

import pytest

from avrt.config.pipeline import parse
from avrt.config.scenario import LoadedScenario
from avrt.errors import SpecError
from avrt.model.execution import ByDevice, Constant, LogNormal, Mixture, Normal, Recorded, Uniform
from avrt.model.scenario import Expectation, FaultSpec, OverheadSpec

MS = 1_000_000
S = 1000 * MS
PIPELINE = """\
pipeline: two
devices: {gpu: {type: simulated, fallback: cpu}, cpu: {type: cpu}}
sources:
  cam: {type: camera, rate: 10 Hz}
  top: {type: lidar}
stages:
  detect: {device: gpu, inputs: {image: cam}, wcet: 20 ms, deadline: 50 ms}
  fuse: {device: cpu, inputs: {objects: detect}, wcet: 5 ms, deadline: 20 ms}
chains:
  see: {path: [cam, detect, fuse], reaction: 300 ms}
"""
HEAD = "scenario: it\npipeline: p.yaml\nduration: 1 s\n"
TOP = "arrivals: {top: {rate: 5 Hz}}\n"


@pytest.fixture
def load(tmp_path):
    def from_text(text, pipeline=PIPELINE):
        (tmp_path / "p.yaml").write_text(pipeline)
        path = tmp_path / "s.yaml"
        path.write_text(text)
        return LoadedScenario(path).spec

    return from_text


@pytest.fixture
def told(load, tmp_path):
    """Return a function from a wrong scenario to what is said of it, its folder left out."""

    def from_text(text, **more):
        with pytest.raises(SpecError) as caught:
            load(text, **more)
        line = str(caught.value).replace(f"{tmp_path}/", "")
        assert "\n" not in line
        return line

    return from_text


def test_defaults(load):
    spec = load(HEAD + TOP)
    assert (spec.name, spec.duration_ns, spec.seed) == ("it", S, 0)
    assert spec.execution == {"detect": Constant(20 * MS), "fuse": Constant(5 * MS)}
    assert [(a.source, a.kind, a.period_ns) for a in spec.arrivals] == [
        ("cam", "periodic", 100 * MS),
        ("top", "periodic", 200 * MS),
    ]
    assert spec.faults == spec.expect == ()


def test_execution_models(load):
    spec = load(
        HEAD
        + TOP
        + """
execution:
  default: {uniform: {min: 50 %, max: 6 ms}}
  detect:
    mixture:
      - {weight: 90 %, model: {normal: {mean: 10 ms, deviation: 2 ms, min: 5 ms, max: 100 %}}}
      - {weight: 5 %, model: {lognormal: {median: 10 ms, sigma: 0.5, max: 50 ms}}}
      - {weight: 5 %, model: {trace: {run: r.mcap, stage: other}}}
"""
    )
    assert spec.execution["fuse"] == Uniform(2_500_000, 6 * MS)
    mixture = spec.execution["detect"]
    assert isinstance(mixture, Mixture)
    assert mixture.weights == (0.9, 0.05, 0.05)
    assert mixture.models[:2] == (
        Normal(10 * MS, 2 * MS, 5 * MS, 20 * MS),
        LogNormal(10 * MS, 0.5, 50 * MS),
    )
    recorded = mixture.models[2]
    assert isinstance(recorded, Recorded)
    assert (recorded.stage, recorded.in_order) == ("other", True)
    assert recorded.run.endswith("/r.mcap")


def test_execution_models_by_device(load):
    spec = load(
        HEAD
        + TOP
        + """
execution:
  default: {devices: {cpu: {constant: 50 %}, default: {constant: 1 ms}}}
  detect: {devices: {cpu: {uniform: {min: 50 %, max: 60 ms}}}}
"""
    )
    assert spec.execution == {
        "detect": ByDevice({"gpu": Constant(20 * MS), "cpu": Uniform(10 * MS, 60 * MS)}),
        "fuse": ByDevice({"cpu": Constant(2_500_000)}),
    }


def test_a_default_by_device_serves_stages_wherever_they_are(load):
    text = "execution: {default: {devices: {gpu: {constant: 1 ms}, default: {constant: 2 ms}}}}"
    assert load(HEAD + TOP + text).execution == {
        "detect": ByDevice({"gpu": Constant(MS), "cpu": Constant(2 * MS)}),
        "fuse": ByDevice({"cpu": Constant(2 * MS)}),
    }


def test_arrivals(load):
    spec = load(
        HEAD
        + """
arrivals:
  cam: {drift: -1.5 ppm, jitter: 5 ms, delay: 2 ms, offset: 1 ms, drop: [3, 5]}
  top: {sporadic: {min: 80 ms, mean: 100 ms}, drop: 2 %}
"""
    )
    cam, top = spec.arrivals
    assert (cam.drift_ppb, cam.jitter_ns, cam.delay_ns, cam.offset_ns) == (
        -1500, 5 * MS, 2 * MS, 1 * MS,
    )  # fmt: skip
    assert cam.drop_indices == {3, 5}
    assert (top.kind, top.distance_ns, top.period_ns) == ("sporadic", 80 * MS, 100 * MS)
    assert top.drop_share == 0.02


def test_faults(load):
    spec = load(
        HEAD
        + TOP
        + """
faults:
  - {at: 100 ms, source_out: cam, for: 50 ms}
  - {at: 0 s, slow_device: gpu, factor: 2}
  - {at: 0 s, clock_step: top, by: -1 ms, for: 1 s}
"""
    )
    assert spec.faults == (
        FaultSpec(kind="source_out", target="cam", at_ns=100 * MS, end_ns=150 * MS),
        FaultSpec(kind="slow_device", target="gpu", at_ns=0, factor=2.0),
        FaultSpec(kind="clock_step", target="top", at_ns=0, end_ns=S, step_ns=-MS),
    )


def test_overheads(load):
    spec = load(
        HEAD
        + TOP
        + """
overheads:
  default: {release: 1 us, decision: 5 us, context_switch: 8 us}
  gpu: {launch: 12 us}
"""
    )
    assert spec.overheads == {
        "gpu": OverheadSpec(launch_ns=12_000),
        "cpu": OverheadSpec(release_ns=1000, decision_ns=5000, switch_ns=8000),
    }


@pytest.mark.parametrize("text", ["", "overheads: {}", "overheads: {gpu: {launch: 0 us}, cpu: {}}"])
def test_a_device_without_overheads_is_left_out(load, text):
    assert load(HEAD + TOP + text).overheads == {}


def test_expectations(load):
    spec = load(
        HEAD
        + TOP
        + """
expect:
  all: {missed: 0}
  stages: {detect: {late_share: at most 1.5 %, p99: at most 40 ms, released: at least 9}}
  chains: {see: {reaction: exactly 60 ms}}
"""
    )
    assert spec.expect == (
        Expectation("all", "", "missed", "exactly", Fraction(0), "0"),
        Expectation("stages", "detect", "late_share", "at most", Fraction(15, 1000), "1.5 %"),
        Expectation("stages", "detect", "p99", "at most", Fraction(40 * MS), "40 ms"),
        Expectation("stages", "detect", "released", "at least", Fraction(9), "9"),
        Expectation("chains", "see", "reaction", "exactly", Fraction(60 * MS), "60 ms"),
    )


def test_expectations_of_windows(load):
    spec = load(
        HEAD
        + TOP
        + """
expect:
  all: {met_rate: at least 9.5 Hz}
  during:
    - {from: 0 s, to: 500 ms, all: {missed: 0}, stages: {fuse: {p99: at most 5 ms}}}
    - {from: 200 ms, to: 1 s, stages: {detect: {met_rate: 10 Hz}}}
"""
    )
    late = (200 * MS, S)
    assert spec.expect == (
        Expectation("all", "", "met_rate", "at least", Fraction(19, 2), "9.5 Hz", (0, S)),
        Expectation("all", "", "missed", "exactly", Fraction(0), "0", (0, 500 * MS)),
        Expectation("stages", "fuse", "p99", "at most", Fraction(5 * MS), "5 ms", (0, 500 * MS)),
        Expectation("stages", "detect", "met_rate", "exactly", Fraction(10), "10 Hz", late),
    )


def during(text):
    return HEAD + TOP + f"expect: {{during: [{{{text}}}]}}"


WRONG = {
    "pipelin: p.yaml\n": "s.yaml:1: unknown key 'pipelin'; did you mean 'pipeline'?",
    "": "s.yaml:1: is empty; a scenario starts with",
    HEAD.replace("p.yaml", "q.yaml"): "no file 'q.yaml'; did you mean 'p.yaml'?",
    HEAD.replace("1 s", "1"): "s.yaml:3: duration: expected a duration with its unit",
    HEAD.replace("1 s", "0 s"): "s.yaml:3: duration: expected a duration above 0, found '0 s'",
    HEAD.replace("1 s", "10 Hz"): "s.yaml:3: duration: expected a duration in s, ms, us or ns",
    HEAD + "seed: -1": "s.yaml:4: seed: expected a whole number of at least 0",
    HEAD: "source 'top' declares no rate; say how it comes under 'arrivals'",
    HEAD + "execution: {detct: {constant: 1 ms}}": "4: execution.detct: no such stage; did you "
    "mean 'detect'?",
    HEAD + "execution: {detect: {unifrom: {}}}": "no such model; did you mean 'uniform'?",
    HEAD + "execution: {detect: {}}": "expected one model, found 0",
    HEAD + "execution: {detect: 5 ms}": "expected a model, such as",
    HEAD + "execution: {detect: {constant: 5 Hz}}": "expected a duration in s, ms, us or ns",
    HEAD + "execution: {detect: {constant: 101 %}}": "expected a share from 0 % to 100 %",
    HEAD + "execution: {detect: {uniform: {min: 2 ms}}}": "'max' is missing; add it, such as",
    HEAD + "execution: {detect: {uniform: {min: 2 ms, max: 1 ms}}}": "'min' is above 'max'",
    HEAD + "execution: {detect: {normal: {mean: 9 ms, deviation: 1 ms, min: 30 ms, max: 40 ms}}}": (
        "almost nothing of this distribution lies within its bounds"
    ),
    HEAD + "execution: {detect: {lognormal: {median: 9 s, sigma: 0.1, max: 1 ms}}}": (
        "almost nothing of this distribution"
    ),
    HEAD + "execution: {detect: {lognormal: {median: 9 s, sigma: 0, max: 1 ms}}}": (
        "sigma: expected a number above 0"
    ),
    HEAD + "execution: {detect: {mixture: [{weight: 50 %, model: {constant: 1 ms}}]}}": (
        "expected 2 to 16 models, 4 deep at most, found 1"
    ),
    HEAD
    + "execution: {detect: {mixture: [{weight: 50 %, model: {constant: 1 ms}}, "
    + "{weight: 49 %, model: {constant: 2 ms}}]}}": "weights that sum to 100 %, found 99 %",
    HEAD + "execution: {default: {x: 1}, detect: {constant: 1 ms}, fuse: {constant: 1 ms}}": (
        "execution.default: every stage has a model of its own; remove this"
    ),
    HEAD + "execution: {fuse: {devices: {gpu: {constant: 1 ms}}}}": (
        "execution.fuse.devices.gpu: 'fuse' never starts there; did you mean 'cpu'?"
    ),
    HEAD + "execution: {detect: {devices: {gpux: {constant: 1 ms}}}}": (
        "'detect' never starts there; did you mean 'gpu'?"
    ),
    HEAD + "execution: {default: {devices: {gpux: {constant: 1 ms}}}}": (
        "execution.default.devices.gpux: no such device; did you mean 'gpu'?"
    ),
    HEAD + "execution: {detect: {devices: {}}}": "expected a model for some device, found none",
    HEAD + "execution: {detect: {devices: {gpu: 5 ms}}}": "expected a model, such as",
    HEAD + "execution: {detect: {devices: 5 ms}}": "expected models by device, found '5 ms'",
    HEAD + "execution: {detect: {devices: {gpu: {constant: -1 ms}}}}": (
        "execution.detect.devices.gpu.constant: expected a duration above 0"
    ),
    HEAD + "execution: {detect: {devices: {cpu: {constant: 1 ms}}, constant: 1 ms}}": (
        "execution.detect: expected 'devices' alone, found 1 more"
    ),
    HEAD + "execution: {detect: {devices: {cpu: {devices: {cpu: {constant: 1 ms}}}}}}": (
        "execution.detect.devices.cpu.devices: no such model"
    ),
    HEAD + "execution: {detect: {constant: 100001 s}}": "expected at most 100000 s",
    HEAD + TOP + "faults: [{at: 1 s, clock_step: cam, by: -100001 s}]": "at most 100000 s",
    HEAD + TOP + "faults: [{at: 1 s, slow_device: cpu, factor: 1001}]": "above 0, at most 1000",
    HEAD + "arrivals: {tpo: {}}": "4: arrivals.tpo: no such source; did you mean 'top'?",
    HEAD + "arrivals: {top: {rate: 0 ms}}": "expected a rate above 0",
    HEAD + "arrivals: {top: {rate: 1 Hz, log: x}}": "'rate' and 'log' exclude each other",
    HEAD + "arrivals: {top: {log: x, drift: 1 ppm}}": "only periodic arrivals drift",
    HEAD + "arrivals: {top: {rate: 1 Hz, jitter: -1 ms}}": "expected a duration of at least 0",
    HEAD + "arrivals: {top: {rate: 1 Hz, drift: 3 %}}": 'expected a drift such as "50 ppm"',
    HEAD + "arrivals: {top: {sporadic: {min: 9 ms, mean: 8 ms}}}": "'min' is above 'mean'",
    HEAD + "arrivals: {top: {burst: {size: 0, distance: 1 ms, every: 8 ms}}}": "size of 1 to",
    HEAD + "arrivals: {top: {burst: {size: 9, distance: 1 ms, every: 8 ms}}}": (
        "a burst lasts until the next one"
    ),
    HEAD + TOP + "faults: [{at: 1 s, sourc_out: cam}]": "found 0; did you mean 'source_out'?",
    HEAD + TOP + "faults: [{source_out: cam}]": "'at' is missing; add it",
    HEAD + TOP + "faults: [{at: 1 s, source_out: camm}]": "no such source; did you mean 'cam'?",
    HEAD + TOP + "faults: [{at: 1 s, slow_device: gpux, factor: 2}]": "did you mean 'gpu'?",
    HEAD + TOP + "faults: [{at: 1 s, slow_device: gpu}]": "'factor' is missing",
    HEAD + TOP + "faults: [{at: 1 s, slow_device: gpu, factor: 0}]": "expected a number above 0",
    HEAD + TOP + "faults: [{at: 1 s, device_lost: gpu, for: 1 s}]": "unknown key 'for'",
    HEAD + TOP + "faults: [{at: 1 s, device_back: gpu}]": "device 'gpu' is not lost by then",
    HEAD + TOP + "faults: [{at: 1 s, device_lost: gpu}, {at: 1 s, device_back: gpu}]": (
        "device 'gpu' is lost and back at the same time"
    ),
    HEAD + TOP + "faults: [{at: 2 s, device_lost: cpu}, {at: 1 s, device_lost: cpu}]": (
        "faults.0: device 'cpu' is lost already by then"
    ),
    HEAD + TOP + "faults: [{at: 1 s, device_lost: cpu}, {at: 2 s, stream_lost: fuse}]": (
        "faults.1: the stream of 'fuse' is lost already by then"
    ),
    HEAD + TOP + "faults: [{at: 1 s, device_lost: gpu}, {at: 1 s, stream_lost: fuse}]": (
        "move this by 1 ns"
    ),
    HEAD + TOP + "overheads: {gpux: {launch: 1 us}}": (
        "overheads.gpux: no such device; did you mean 'gpu'?"
    ),
    HEAD + TOP + "overheads: {gpu: {launch: -1 us}}": "overheads.gpu.launch: expected a duration "
    "of at least 0, found '-1 us'",
    HEAD + TOP + "overheads: {gpu: {launch: 1}}": "expected a duration with its unit",
    HEAD + TOP + "overheads: {gpu: {lunch: 1 us}}": "unknown key 'lunch'; did you mean 'launch'?",
    HEAD + TOP + "overheads: {gpu: 1 us}": "expected a mapping with keys such as release",
    HEAD + TOP + "overheads: [1 us]": "expected overheads by device, found a list",
    HEAD + TOP + "overheads: {default: {}, gpu: {}, cpu: {}}": (
        "overheads.default: every device has overheads of its own; remove this"
    ),
    HEAD + TOP + "expect: {all: {lates: 0}}": "unknown key 'lates'; did you mean 'late'?",
    HEAD + TOP + "expect: {all: {late: -1}}": "expected a whole number of at least 0",
    HEAD + TOP + "expect: {all: {late: below 3}}": "expected a whole number of at least 0",
    HEAD + TOP + "expect: {all: {late: [0]}}": "expected a limit, such as",
    HEAD + TOP + "expect: {all: {late_share: 3}}": "expected a share from 0 % to 100 %",
    HEAD + TOP + "expect: {stages: {fus: {late: 0}}}": "no such stage; did you mean 'fuse'?",
    HEAD + TOP + "expect: {chains: {sea: {broken: 0}}}": "no such chain; did you mean 'see'?",
    HEAD + TOP + "expect: {stages: {fuse: {p99: 40}}}": "expected a duration with its unit",
    HEAD + TOP + "expect: {all: {p99: 40 ms}}": "unknown key 'p99'",
    HEAD + TOP + "expect: {all: {met_rate: 3}}": 'expected how many a second, such as "75 Hz"',
    HEAD + TOP + "expect: {all: {met_rate: at least 3 ms}}": "expected how many a second",
    HEAD + TOP + "expect: {during: {all: {late: 0}}}": "expected a list of windows with what is",
    during("to: 1 s, all: {late: 0}"): "expect.during.0: 'from' is missing",
    during("from: 0 s, all: {late: 0}"): "'to' is missing",
    during("from: 0 s, to: 1, all: {late: 0}"): "expected a duration with its unit",
    during("from: -1 ms, to: 1 s, all: {late: 0}"): "expect.during.0.from: expected a duration of "
    "at least 0",
    during("from: 1 s, to: 1 s, all: {late: 0}"): "expected more than 'from', found '1 s'",
    during("from: 0 s, to: 1001 ms, all: {late: 0}"): (
        "expect.during.0.to: expected at most the duration 1 s, found '1001 ms'"
    ),
    during("from: 0 s, to: 1 s"): "nothing is expected of this window; add 'all' or 'stages'",
    during("from: 0 s, to: 1 s, chains: {see: {broken: 0}}"): "unknown key 'chains'",
    during("from: 0 s, to: 1 s, all: {violations: 0}"): "unknown key 'violations'",
    during("from: 0 s, to: 1 s, stages: {fus: {late: 0}}"): "did you mean 'fuse'?",
    during("from: 0 s, to: 1 s, stages: {fuse: {met_rate: -1 Hz}}"): "how many a second",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_said_of_a_wrong_scenario(told, text):
    assert WRONG[text] in told(text)


def test_every_error_has_its_line(told):
    assert told(HEAD + "execution:\n  detect:\n    constant: x\n").startswith(
        "s.yaml:6: execution.detect.constant: "
    )


def test_an_error_of_the_pipeline_has_its_place_there(told):
    broken = PIPELINE.replace("wcet: 5 ms", "wcet: 5")
    assert told(HEAD + TOP, pipeline=broken).startswith("p.yaml:8: stages.fuse.wcet: ")


def test_a_missing_scenario_is_told(tmp_path):
    (tmp_path / "burst.yaml").write_text("x")
    with pytest.raises(SpecError, match=r"did you mean .*burst.yaml"):
        LoadedScenario(tmp_path / "bust.yaml")


def test_a_truncated_scenario_is_told(told):
    assert "s.yaml:4" in told(HEAD + "expect: {all: {late: 0")


def test_a_stream_that_a_device_brought_back_may_be_lost_again(load):
    spec = load(
        HEAD
        + TOP
        + """
faults:
  - {at: 1 ms, stream_lost: detect}
  - {at: 2 ms, device_lost: gpu}
  - {at: 3 ms, device_back: gpu}
  - {at: 4 ms, stream_lost: detect}
"""
    )
    assert len(spec.faults) == 4


def test_a_mistyped_rate_is_told_before_it_takes_for_ever(told):
    line = told(HEAD + "arrivals: {top: {rate: 5 Hz}, cam: {rate: 1000000000 Hz}}\n")
    assert line == (
        "s.yaml:3: duration: about 1e+09 messages and timer releases in that time; "
        "expected at most 1e+08: shorten it, or lower the rates"
    )


def test_a_pipeline_is_no_scenario_and_a_scenario_no_pipeline(told):
    assert told(PIPELINE) == (
        "s.yaml:1: this is a pipeline, not a scenario; write a scenario that names it"
    )
    with pytest.raises(SpecError, match=r"x\.yaml:1: this is a scenario, not a pipeline; give it"):
        parse(HEAD, "x.yaml")
