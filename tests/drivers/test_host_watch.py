"""The host beside a run: every sample is noted once, however many are kept."""

from types import SimpleNamespace

from avrt.device.samples import ResourceSample, Samples
from avrt.drivers.host_watch import HostWatch
from avrt.model.spec import DeviceSpec, PipelineSpec


class Kept:
    """A recorder that keeps what is noted."""

    def __init__(self):
        self.at_ns = []

    def note(self, _topic, item, _at_ns):
        self.at_ns.append(item["at_ns"])


def test_samples_are_noted_once_also_when_old_ones_are_gone():
    spec = PipelineSpec(name="p", devices=(DeviceSpec(name="cpu"),), stages=())
    watch, recorder = HostWatch(spec, is_realtime=False), Kept()
    samples = [ResourceSample(n, n + 1, 2, 0.5) for n in range(10)]
    watch._monitor = SimpleNamespace(samples=Samples(4))
    for first, last in ((0, 4), (4, 4), (4, 6), (6, 10)):
        for sample in samples[first:last]:
            watch._monitor.samples.append(sample)
        watch.note(recorder, SimpleNamespace(at_ns=lambda host_ns: host_ns))
    assert recorder.at_ns == list(range(1, 11))
