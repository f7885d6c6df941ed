"""Hypothesis: derandomised in the normal run, fewer examples under `quick`, many under `nightly`.

Choose with `--hypothesis-profile=NAME`. And small logs for whoever replays one. What tests of
the kernel (`builder`, `pipelines`, `tracing`), of drivers (`small_stages`), of pipeline files
(`spoilt`), of stages (`small_networks`, `traffic`, `driving`), of traces (`traces`, `perfetto`) and
of scores (`sequences`, `scored`) and of logs (`small_sets`) share, and `recorded_cuda`, all tests
can import.
"""

import gc
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

FOLDERS = (
    "kernel",
    "drivers",
    "config",
    "stages",
    "analysis",
    "world",
    "report",
    "metrics",
    "device",
    "safety",
    "logs",
)
sys.path[:0] = [str(Path(__file__).parent / folder) for folder in FOLDERS]

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile(
    "nightly",
    derandomize=False,
    deadline=None,
    print_blob=True,
    max_examples=5000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("ci")

START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000


@pytest.fixture(scope="session")
def settled():
    """Every replay collects garbage first: 0.2 s with the heap of a whole test session."""
    import avrt.drivers.replay  # noqa: F401, PLC0415

    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def make_drive(settled, tmp_path):  # noqa: ARG001 - by its name
    """Return a function that writes a small log of LiDAR topics and returns its path."""
    from avrt.logs.writer import LogWriter  # noqa: PLC0415 - most tests need none of it

    def make(  # noqa: PLR0913
        frames=5,
        *,
        topics=("/lidar",),
        points=4,
        seed=0,
        period_ns=PERIOD_NS,
        stamp_ns=lambda log_ns: log_ns,
        name="drive.mcap",
        **options,
    ):
        path = tmp_path / name
        with LogWriter(path, **options) as log:
            for index in range(frames):
                log_ns = START_NS + index * period_ns
                for place, topic in enumerate(topics):
                    generator = np.random.default_rng((seed, index, place))
                    xyz = generator.normal(size=(points, 3)).astype(np.float32)
                    log.add_cloud(topic, "roof", stamp_ns(log_ns), xyz, log_ns=log_ns)
        return path

    return make
