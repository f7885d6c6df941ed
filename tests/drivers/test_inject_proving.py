"""In virtual time, too, a device that comes back is used once it has proved itself."""

from pathlib import Path

import pytest

from avrt.api.campaign import FaultCampaign
from avrt.drivers import probation
from avrt.drivers.inject.proving import Returns
from avrt.drivers.inject.run import run_once
from avrt.drivers.shadows import Shadows
from avrt.errors import SoftwareFault
from avrt.model.campaign import Injection
from avrt.model.events import Arrived, DeviceBack, DeviceLost
from avrt.units import NS_PER_MS, NS_PER_S

LOST, BACK = DeviceLost("gpu"), DeviceBack("gpu")
OTHER = Arrived("lidar", 0, 0, 0, -1)


class Trial:
    """A trial whose verdict a test gives."""

    def __init__(self, begins="", verdict=None):
        self.begins, self.word, self.follows = begins, verdict, False

    def begin(self):
        return self.begins

    def join(self, _shadows):
        self.follows = True

    def leave(self, _shadows):
        self.follows = False

    def settle(self):
        assert self.follows

    def verdict(self, _at_ns):
        return self.word


class Probation:
    """Gives trials in turn, and keeps what it was asked for."""

    def __init__(self, *trials):
        self.trials, self.asked, self.shadows = list(trials), [], Shadows()

    def trial(self, device, lost):
        self.asked.append((device, sorted(lost)))
        return self.trials.pop(0)


def test_the_kernel_hears_of_a_device_once_its_trial_says_so():
    trial = Trial()
    returns = Returns(Probation(trial))
    assert returns.through(0, [OTHER, LOST]) == [OTHER, LOST]
    assert returns.through(10, [BACK]) == []
    assert returns.through(20, [OTHER]) == [OTHER]
    trial.word = ""
    assert returns.through(30, [OTHER]) == [OTHER, BACK]
    assert not trial.follows
    assert returns.through(40, [LOST]) == [LOST]


def test_a_trial_may_be_over_at_once():
    returns = Returns(Probation(Trial(verdict="")))
    returns.through(0, [LOST])
    assert returns.through(10, [BACK]) == [BACK]


def test_one_that_breaks_on_probation_has_failed_it_and_the_third_time_is_the_last(caplog):
    trials = [Trial(), Trial(), Trial()]
    probation = Probation(*trials)
    returns = Returns(probation)
    assert returns.through(0, [LOST]) == [LOST]
    for number in range(1, 9):
        assert returns.through(2 * number * NS_PER_S, [BACK]) == []
        assert returns.through((2 * number + 1) * NS_PER_S, [LOST]) == []
    assert probation.trials == []
    assert not any(trial.follows for trial in trials)
    assert caplog.messages[0] == "device gpu did not prove itself: it broke again"
    assert caplog.messages[-1].endswith("3 times within 10 min: it stays out")


def test_the_next_try_comes_after_a_wait_and_only_while_the_device_answers():
    trials = [Trial(begins="see: it differs"), SoftwareFault("exception", "no"), Trial(verdict="")]
    probation = Probation(*trials)
    returns = Returns(probation)
    returns.through(0, [LOST])
    returns.through(NS_PER_S, [BACK])
    assert returns.through(3 * NS_PER_S - 1, []) == []
    assert len(probation.asked) == 1
    assert returns.through(3 * NS_PER_S, []) == []
    assert len(probation.asked) == 2
    returns.through(4 * NS_PER_S, [LOST])
    assert returns.through(9 * NS_PER_S, []) == []
    assert returns.through(10 * NS_PER_S, [BACK]) == [BACK]
    assert probation.asked == [("gpu", ["gpu"])] * 3


def test_a_trial_knows_which_other_devices_are_lost():
    made = Probation(Trial(verdict=""), Trial(verdict=""))
    returns = Returns(made)
    returns.through(0, [LOST, DeviceLost("npu")])
    assert returns.through(1, [BACK, DeviceBack("npu")]) == [BACK, DeviceBack("npu")]
    assert made.asked == [("gpu", ["gpu", "npu"]), ("npu", ["npu"])]


# A whole run

STAGES = """
def far(cloud):
    return float(abs(cloud.payload.xyz).max())
"""
PIPELINE = """
pipeline: small
devices: {gpu: {type: simulated, fallback: cpu}, cpu: {type: cpu}}
sources: {lidar: {type: lidar, topic: /lidar, rate: 10 Hz}}
stages:
  see: {run: "stages.py:far", device: gpu, inputs: {cloud: lidar}, wcet: 5 ms, deadline: 30 ms}
"""
CAMPAIGN = """
campaign: small
pipeline: small.yaml
log: drive.mcap
rows: {any: {about: it, faults: [{where: source.lidar, what: drop, frame: 3}]}}
"""
MS = NS_PER_MS


@pytest.fixture
def bench(tmp_path, make_drive):
    make_drive(20).replace(tmp_path / "drive.mcap")
    for name, text in (
        ("stages.py", STAGES),
        ("small.yaml", PIPELINE),
        ("campaign.yaml", CAMPAIGN),
    ):
        Path(tmp_path / name).write_text(text)
    campaign = FaultCampaign.load(tmp_path / "campaign.yaml")
    return campaign._bench(campaign.spec.drive)


@pytest.fixture
def came_back(bench, monkeypatch):
    """Return a function that runs faults, and when the kernel heard that the device is back."""
    monkeypatch.setattr(probation, "SHADOW_FRAMES", 5)
    through, heard = Returns.through, []

    def listening(self, at_ns, events):
        told = through(self, at_ns, events)
        heard.extend(at_ns // MS for event in told if event == BACK)
        return told

    monkeypatch.setattr(Returns, "through", listening)

    def run(*faults):
        heard.clear()
        assert run_once(bench, faults).crash == ""
        return list(heard)

    return run


def gpu(kind, at_ms, for_ms=None, **keys):
    for_ns = None if for_ms is None else for_ms * MS
    return Injection(
        place="device", target="gpu", kind=kind, at_ns=at_ms * MS, for_ns=for_ns, **keys
    )


def test_it_is_back_with_the_last_of_its_shadow_frames(came_back):
    """It has the state behind frame 5, and follows 6 to 10; that of 400 ms had begun before."""
    lost = gpu("lost", 150, 251)
    assert came_back(lost) == came_back(lost) == [1005]


def test_one_that_computes_wrongly_is_never_back(came_back):
    assert came_back(gpu("lost", 150, 251), gpu("wrong", 160, by=3.0)) == []


def test_one_that_computes_wrongly_once_has_to_begin_again(came_back):
    once = gpu("wrong", 700, 50, by=3.0)
    assert came_back(gpu("lost", 150, 51)) == [805]
    assert came_back(gpu("lost", 150, 51), once) == []  # 2 s are longer than the drive


def test_a_wrong_device_is_wrong_for_jobs_too(bench):
    golden, wrong = run_once(bench), run_once(bench, [gpu("wrong", 450, 200, by=3.0)])
    pairs = zip(golden.outputs["see"], wrong.outputs["see"], strict=True)
    assert [i for i, (a, b) in enumerate(pairs) if b.payload == a.payload + 3.0] == [5, 6]
