"""A device that comes back proves itself: its twins repeat what was good, and follow what is."""

import threading
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import avrt
from avrt.drivers import probation as module
from avrt.drivers.probation import BURST, QUIET_NS, SPREAD, Probation, Trial, Turns, Twin
from avrt.drivers.shadows import Frame, Shadows
from avrt.exec.places import OnProcessor
from avrt.exec.stream import Stream
from avrt.model.commands import Dispatch
from avrt.safety.replicas import SHADOW_FRAMES

FOREVER_S, FOREVER_NS = 60, 60 * 10**9


class Summing(avrt.Stage):
    """Its state is the sum of all that it was given; `wrong` is what its device adds."""

    def __init__(self, wrong=0):
        self.sum, self.wrong = 0, wrong

    def process(self, number):
        self.sum += number
        if number == 13:
            raise ValueError("13")
        return self.sum + self.wrong

    def freeze(self):
        return self.sum

    def thaw(self, state):
        self.sum = state


class Waiting(Summing):
    """Computes when it is allowed to."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Semaphore(0)

    def process(self, number):
        assert self.gate.acquire(timeout=FOREVER_S)
        return super().process(number)


class Task:
    """The stream of a task, as a driver uses it, and what follows its jobs."""

    def __init__(self):
        self.shadows = Shadows()
        self.stream = Stream("sum", Summing())
        self.stream.warm()
        self.jobs = 0

    def begin(self, number, *, anew=False, variant=""):
        """Begin a job; return what to tell of its end."""
        self.jobs += 1
        inputs, told = {"number": number}, []
        command = Dispatch(self.jobs, "sum", self.jobs, "sum", "cpu", 0, variant, (), 0, 0)
        begin = partial(self.stream.begin, inputs, told.append, anew=anew)
        self.shadows.beginning(command, inputs, self.stream, begin, anew=anew)()
        return partial(self._end, self.jobs, told)

    def _end(self, job, told, *, known=True):
        assert self.stream.idle().result(FOREVER_S)
        self.shadows.ended(job, told[0] if known else None)

    def do(self, *numbers, **keys):
        for number in numbers:
            self.begin(number, **keys)()


def twin_of(task, stage=None, **keys):
    """Return a warm twin that follows a task."""
    stream = Stream("sum on gpu", stage or Summing(), places={"gpu": OnProcessor})
    keys = {"golden": list(task.shadows.golden.values()), "variants": ("",), **keys}
    made = Twin("sum", "gpu", stream, differs=lambda a, b: a != b, **keys)
    made.begin(FOREVER_NS)
    task.shadows.join(made)
    return made


@pytest.fixture
def task():
    made = Task()
    yield made
    made.stream.close()
    made.shadows.close()


def test_a_twin_of_a_stage_with_a_state_agrees_over_all_shadow_frames(task):
    """It has the state behind the first job, and follows the next ones; then it is done."""
    task.do(3, 4)
    twin = twin_of(task)
    assert (twin.failure, twin.agreed) == ("", 0)
    for number in range(100, 110 + SHADOW_FRAMES):
        task.do(number)
        twin.settle(FOREVER_NS)
    assert (twin.failure, twin.agreed, twin.left_out) == ("", SHADOW_FRAMES, 10)


def test_the_golden_frame_is_the_first_good_one_with_the_state_before_it(task):
    task.do(13, 4, 5)
    (frame,) = task.shadows.golden.values()
    assert frame == Frame({"number": 4}, "", False, 17, ("", 13))


def test_a_device_that_computes_wrongly_fails_at_the_golden_frame(task):
    task.do(3, 4)
    assert twin_of(task, Summing(wrong=1)).failure == "its output differs"


def test_without_a_golden_frame_the_first_shadow_frame_tells(task):
    twin = twin_of(task, Summing(wrong=1))
    assert twin.failure == ""
    task.do(3, 4)
    twin.settle(FOREVER_NS)
    assert twin.failure == "its output differs"


def test_a_stage_that_cannot_warm_up_there_is_told(task):
    class Cold(Summing):
        def warm(self):
            raise RuntimeError("no kernel image")

    assert "warm-up failed: exception: RuntimeError: no kernel" in twin_of(task, Cold()).failure


def test_a_slow_twin_leaves_frames_out_and_keeps_nobody_waiting(task):
    stage = Waiting()
    twin = twin_of(task, stage)
    task.do(*range(50))
    assert (twin.taken, twin.done, twin.left_out) == (1, 0, 49)
    stage.gate.release(99)
    twin.settle(FOREVER_NS)
    assert twin.agreed == 1
    task.do(1, 2)
    twin.settle(FOREVER_NS)
    assert (twin.failure, twin.agreed) == ("", 2)


def test_a_twin_that_does_not_answer_has_failed(task):
    twin = twin_of(task, Waiting())
    task.do(1, 2)
    twin.settle(10**6)
    assert twin.failure == "it does not answer"
    twin.stream._stages[""].gate.release()


def test_for_a_job_of_another_variant_it_repeats_its_golden_frame(task):
    task.do(3)
    twin = twin_of(task)
    for number, variant, agreed in ((4, "light", 1), (5, "light", 2), (6, "", 2), (7, "", 3)):
        task.do(number, variant=variant)
        twin.settle(FOREVER_NS)
        assert (twin.failure, twin.agreed) == ("", agreed)


def test_what_began_before_it_joined_is_not_followed(task):
    task.do(1)
    end = task.begin(2)
    twin = twin_of(task)
    end()
    assert (twin.taken, twin.done, twin.left_out) == (1, 1, 0)  # the golden one


steps = st.lists(
    st.one_of(
        st.tuples(st.just("do"), st.integers(0, 15)),
        st.tuples(st.just("anew"), st.integers(0, 9)),
        st.tuples(st.just("lose"), st.integers(0, 9)),
        st.tuples(st.just("other"), st.integers(100, 999)),
        st.tuples(st.just("renew"), st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(steps, st.integers(0, 4))
@example([("do", 1), ("do", 1), ("other", 100), ("do", 2), ("do", 2)], 0)
@example([("do", 1), ("do", 1), ("renew", 0), ("do", 2), ("do", 2)], 0)
@example([("do", 1), ("do", 1), ("lose", 3), ("do", 2), ("do", 2)], 0)
def test_whatever_happens_to_a_stage_a_healthy_twin_never_disagrees(given, joins):
    """It agrees with each good job but the first one after it joined or lost track."""
    task, twin, good, knows = Task(), None, 0, False
    for number, (what, value) in enumerate(given):
        if number == joins:
            twin, knows = twin_of(task), False
        match what:
            case "do" | "anew":
                task.do(value, anew=what == "anew")
                good += twin is not None and knows and value != 13
                knows = not (knows and value == 13)
            case "lose":
                task.begin(value)(known=False)
                knows = not knows
            case "other":
                donor = Stream("other", Summing())
                donor.submit({"number": value})
                task.stream.adopt(donor.state())
                donor.close()
                knows = False
            case "renew":
                task.stream.begin_anew()
                knows = False
        if twin is not None:
            twin.settle(FOREVER_NS)
            assert (twin.failure, twin.agreed) == ("", good)
    task.stream.close()
    task.shadows.close()


# Turns: in live runs


class Clock:
    """Host time that stands still, and processor time of a second a frame."""

    def __init__(self):
        self.at_ns = self.spent_ns = 0

    def now_ns(self):
        return self.at_ns

    def thread_ns(self):
        self.spent_ns += 10**9
        return self.spent_ns


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, "clock", made)
    return made


def test_a_turn_is_so_many_frames_and_then_all_rest(task, clock):
    twin = twin_of(task, turns=Turns())
    for number in range(BURST + 5):
        task.do(number)
        twin.idle()
        twin.settle(FOREVER_NS)
    assert twin.agreed == BURST
    clock.at_ns = BURST * SPREAD * 10**9 - 1
    task.do(1, 2)
    assert (twin.taken, twin.left_out) == (BURST, 7)
    clock.at_ns += 1
    task.do(3, 4)
    assert twin.left_out == 8
    twin.idle()
    twin.settle(FOREVER_NS)
    assert (twin.failure, twin.agreed) == ("", BURST + 1)


def test_a_frame_is_held_until_nothing_is_underway_or_the_next_job_begins(task, clock):
    assert clock.at_ns == 0
    twin = twin_of(task, turns=Turns())
    task.do(1, 2)
    assert (twin.taken, twin.waiting) == (0, 1)
    task.shadows.idle()
    twin.settle(FOREVER_NS)
    assert twin.agreed == 1
    task.do(3)
    assert twin.taken == 1
    task.begin(4)
    assert twin.taken == 2


def test_one_twin_at_a_time_has_the_turn_and_loses_it_when_nothing_comes_of_it(clock):
    turns, first, second = Turns(), Counted("first"), Counted("second")
    assert turns.take(first)
    assert not turns.take(second)
    assert turns.take(first)
    clock.at_ns = QUIET_NS - 1
    assert not turns.take(second)
    clock.at_ns += 1
    assert turns.take(second)
    turns.leave(first)
    assert turns.take(second)
    turns.leave(second)
    assert turns.take(first)


def test_a_twin_that_computes_keeps_the_turn(clock):
    turns, stuck = Turns(), Counted("stuck", taken=1)
    assert turns.take(stuck)
    clock.at_ns = 99 * QUIET_NS
    assert not turns.take(Counted("other"))


# Trials: the time is an argument


class Counted:
    """A twin of which a test says how it stands."""

    def __init__(self, task="see", **keys):
        self.task, self.failure, self.is_alone = task, "", False
        self.taken = self.done = self.agreed = self.left_out = 0
        vars(self).update(keys)

    @property
    def waiting(self):
        return self.taken - self.done

    @property
    def moves(self):
        return self.left_out + self.taken + self.done

    def went(self, count):
        self.taken = self.done = self.agreed = self.agreed + count


def test_a_trial_is_over_when_every_twin_has_agreed_for_long_enough():
    see, plan = Counted("see"), Counted("plan")
    trial = Trial("gpu", [see, plan], FOREVER_NS)
    see.went(SHADOW_FRAMES)
    plan.went(SHADOW_FRAMES - 1)
    assert trial.verdict(0) is None
    plan.went(1)
    assert trial.verdict(1) == ""


def test_one_that_disagrees_ends_it_whatever_the_others_did():
    see, plan = Counted("see", agreed=SHADOW_FRAMES), Counted("plan", failure="its output differs")
    assert Trial("gpu", [see, plan], FOREVER_NS).verdict(0) == "plan: its output differs"


def test_a_task_without_jobs_goes_by_its_golden_frames_alone():
    see = Counted()
    trial = Trial("gpu", [see], FOREVER_NS)
    assert trial.verdict(7) is None
    see.went(1)
    assert trial.verdict(QUIET_NS) is None
    assert trial.verdict(2 * QUIET_NS - 1) is None
    assert trial.verdict(2 * QUIET_NS) == ""


def test_a_task_that_has_nowhere_else_to_run_is_not_waited_for():
    assert Trial("gpu", [Counted(is_alone=True)], FOREVER_NS).verdict(0) == ""


def test_a_twin_that_is_stuck_has_failed_though_its_task_goes_on():
    see = Counted(taken=3, done=2, agreed=2)
    trial = Trial("gpu", [see], 7)
    for at_ns in range(7):
        see.left_out += 1
        assert trial.verdict(at_ns) is None
    assert trial.verdict(7) == "see: it does not answer"


def test_one_that_has_rested_for_long_is_not_stuck():
    see = Counted(left_out=1)
    trial = Trial("gpu", [see], 7)
    assert trial.verdict(0) is None
    see.left_out, see.taken = 99, 1
    assert trial.verdict(99) is None


def test_one_that_waits_for_its_turn_is_not_quiet():
    see = Counted()
    trial = Trial("gpu", [see], FOREVER_NS)
    for at_ns in range(0, 9 * QUIET_NS, QUIET_NS):
        see.left_out += 1
        assert trial.verdict(at_ns) is None


# Which twins there are


def small_pipeline():
    devices = {"gpu": {"type": "simulated", "fallback": "cpu"}, "cpu": {"type": "cpu"}}
    pipeline = avrt.Pipeline("p", devices={**devices, "alone": {"type": "cpu"}})
    keys = {"period": "100 ms", "wcet": "1 ms", "deadline": "9 ms"}
    light = {"light": {"device": "cpu", "wcet": "1 ms"}}
    pipeline.add(lambda: 1, name="see", device="gpu", variants=light, **keys)
    pipeline.add(lambda: 2, name="plan", device="alone", **keys)
    return pipeline.check_stages()


class Plain(avrt.Stage):
    def process(self):
        return 1


def make(task, _device):
    return {task: Plain(), f"{task}@light": Plain()}


@pytest.mark.parametrize(
    ("device", "lost", "expected"),
    [
        ("gpu", {"gpu"}, [("see", ("",), False)]),
        ("cpu", {"cpu"}, [("see", ("", "light"), False)]),
        ("gpu", {"gpu", "cpu"}, [("see", ("",), True)]),
        ("alone", {"alone"}, [("plan", ("",), True)]),
    ],
)
def test_every_stage_that_may_run_on_a_device_has_a_twin_there(device, lost, expected):
    trial = Probation(small_pipeline(), Shadows(), make, FOREVER_NS).trial(device, lost)
    assert [(t.task, tuple(t.variants), t.is_alone) for t in trial.twins] == expected
    assert trial.begin() == ""
    trial.close()


def test_a_stage_that_cannot_be_made_is_told_and_leaves_no_thread():
    def refuse(_task, _device):
        raise RuntimeError("no memory")

    before = threading.active_count()
    fault = Probation(small_pipeline(), Shadows(), refuse, FOREVER_NS).trial("gpu", {"gpu"})
    assert "no memory" in fault.detail
    assert threading.active_count() == before


def test_where_nothing_can_be_made_a_device_that_answers_is_back():
    trial = Probation(small_pipeline(), Shadows(), None, FOREVER_NS).trial("gpu", {"gpu"})
    assert (trial.begin(), trial.verdict(0)) == ("", "")


def test_the_number_of_shadow_frames_is_that_of_replicas():
    assert module.SHADOW_FRAMES == SHADOW_FRAMES == 100
