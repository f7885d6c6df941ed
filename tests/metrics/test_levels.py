"""The time at each level, and how long it took to be back."""

from hypothesis import given
from hypothesis import strategies as st

from avrt.metrics.levels import level_figures
from avrt.model.ladder import LadderSpec, LevelSpec
from avrt.model.records import ModeRecord
from avrt.model.spec import DeviceSpec, PipelineSpec

NAMES = ("full", "half", "stop")
SPEC = PipelineSpec(
    name="p",
    devices=(DeviceSpec(name="cpu"),),
    stages=(),
    ladder=LadderSpec(levels=tuple(LevelSpec(name=name) for name in NAMES)),
)


def entered(*changes):
    return [ModeRecord(mode, at_ns, "x", entered=True) for at_ns, mode in changes]


def test_a_pipeline_without_a_ladder_has_no_levels():
    plain = PipelineSpec(name="p", devices=(), stages=())
    assert level_figures(plain, entered((3, "half")), 0, 10) is None


def test_a_run_that_stays_at_the_first_level():
    figures = level_figures(SPEC, [], 0, 10)
    assert figures.time_ns == {"full": 10, "half": 0, "stop": 0}
    assert (figures.available, figures.mttr_ns, figures.is_open) == (1.0, None, False)


def test_ways_down_and_back():
    modes = entered((10, "half"), (14, "full"), (20, "stop"), (26, "half"), (30, "full"))
    modes.insert(1, ModeRecord("stop", 12, "x", entered=False))
    figures = level_figures(SPEC, modes, 0, 100)
    assert figures.time_ns == {"full": 86, "half": 8, "stop": 6}
    assert figures.entered == {"full": 2, "half": 2, "stop": 1}
    assert figures.repairs_ns == (4, 10)
    assert (figures.mttr_ns, figures.available, figures.is_open) == (7, 0.94, False)
    assert figures.summary()["repair_ns_max"] == 10


def test_a_way_that_is_not_over_is_open():
    figures = level_figures(SPEC, entered((90, "stop")), 40, 100)
    assert figures.time_ns == {"full": 50, "half": 0, "stop": 10}
    assert (figures.repairs_ns, figures.is_open) == ((), True)


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(NAMES)), max_size=9), st.integers(0))
def test_all_time_is_at_some_level(changes, beyond_ns):
    changes = sorted(changes, key=lambda change: change[0])
    figures = level_figures(SPEC, entered(*changes), 0, 99 + beyond_ns)
    assert figures.total_ns == 99 + beyond_ns
    assert sum(figures.entered.values()) == len(changes)
    assert 0 <= figures.available <= 1
