"""A tiny language for hand-made examples: a pipeline in a line, and a kernel driven by hand.

Times are plain integers. The work of a job ends when the test says so.
"""

from __future__ import annotations

from avrt.kernel import Kernel
from avrt.model.commands import Dispatch, Publish, Reclaim, Record
from avrt.model.events import Arrived, Completed
from avrt.model.graph import check
from avrt.model.records import JobRecord
from avrt.model.spec import DeviceSpec, InputSpec, PipelineSpec, SourceSpec, StageSpec


def device(name="cpu", **keys):
    kind = "simulated" if keys.get("preemptive") else "cpu"
    return DeviceSpec(name=name, type=kind, **keys)


def timer(name, period_ns=100, **keys):
    """A stage with a timer; it runs on `cpu`, wcet 2, deadline 10."""
    return _stage(name, period_ns=period_ns, **keys)


def stage(name, *inputs, **keys):
    """A stage that its first input triggers; inputs are names of producers or InputSpecs."""
    items = tuple(i if isinstance(i, InputSpec) else InputSpec(name=i, source=i) for i in inputs)
    if "sync" not in keys:
        keys["trigger"] = items[0].name
    return _stage(name, inputs=items, **keys)


def _stage(name, **keys):
    defaults = {"device": "cpu", "wcet_ns": 2, "deadline_ns": 10}
    return StageSpec(name=name, **(defaults | keys))


def sampled(source, **keys):
    return InputSpec(name=source, source=source, **keys)


class Bench:
    """A kernel on the bench.

    Sources are made for every name that is read and no stage makes; `periods` are theirs, or 10.
    """

    def __init__(
        self,
        *stages,
        devices=(),
        policy="edf",
        chains=(),
        recorded=(),
        sources=(),
        periods=None,
        **spec,
    ):
        made = {s.name for s in stages}
        read = [i.source for s in stages for i in s.inputs if i.source not in made]
        self.spec = PipelineSpec(
            name="bench",
            policy=policy,
            devices=tuple(devices) or (device(),),
            sources=tuple(
                SourceSpec(name=name, type="lidar", period_ns=(periods or {}).get(name, 10))
                for name in dict.fromkeys((*sources, *read))
            ),
            stages=stages,
            chains=tuple(chains),
            **spec,
        )
        check(self.spec)
        self.kernel = Kernel(self.spec, recorded=recorded)
        self.sequences = dict.fromkeys((s.name for s in self.spec.sources), 0)
        self.last = []
        self.all = []

    def at(self, at_ns, *events):
        """Call the kernel and keep the commands."""
        self.last = self.kernel.handle(at_ns, events)
        self.all += self.last
        return self.last

    def arrive(self, at_ns, source, *more, capture_ns=None, log_ns=None, buffer=None):
        """Let a message of `source` arrive, captured at that instant unless told otherwise."""
        return self.at(at_ns, self.arrival(at_ns, source, capture_ns, log_ns, buffer), *more)

    def arrival(self, at_ns, source, capture_ns=None, log_ns=None, buffer=None):
        sequence = self.sequences[source]
        self.sequences[source] += 1
        handle = -100 * (1 + list(self.sequences).index(source)) - sequence
        return Arrived(
            source,
            sequence,
            at_ns if capture_ns is None else capture_ns,
            at_ns if log_ns is None else log_ns,
            handle if buffer is None else buffer,
        )

    def complete(self, at_ns, *jobs):
        """Let the work of jobs end; the output of job n lies in buffer n."""
        return self.at(at_ns, *(Completed(job, job, at_ns) for job in jobs))

    # What the last call said

    def dispatched(self):
        return [c.task for c in self.last if isinstance(c, Dispatch)]

    def dispatch(self):
        """The only dispatch of the last call."""
        (command,) = [c for c in self.last if isinstance(c, Dispatch)]
        return command

    def outcomes(self):
        """`(job, outcome)` or `(job, outcome, reason)` of the last call."""
        records = self.records(JobRecord)
        return [(r.job, r.outcome, r.reason) if r.reason else (r.job, r.outcome) for r in records]

    def records(self, kind):
        return _records(self.last, kind)

    def all_records(self, kind):
        return _records(self.all, kind)

    def published(self):
        return [c.buffer for c in self.last if isinstance(c, Publish)]

    def reclaimed(self):
        return [c.buffer for c in self.last if isinstance(c, Reclaim)]

    def commands(self, *kinds):
        return [c for c in self.last if isinstance(c, kinds)]


def _records(commands, kind):
    return [c.record for c in commands if isinstance(c, Record) and isinstance(c.record, kind)]
