"""One hop in other runtimes, each in a process of its own environment: xronos and Holoscan.

Runs under the interpreter that has the runtime and needs nothing of avrt: a request is one JSON
line (size, rate, count, realtime), the answer is the latencies in ns. `Peer` is the other end, for
the tools beside it. One reactor or operator sends a reference at a rate, another takes the time;
both get SCHED_FIFO, fine timers and a frozen garbage collector where that is asked for.

    xronos     pip install xronos
    holoscan   pip install --no-deps holoscan-cu12
               pip install numpy cloudpickle pillow wheel-axle-runtime nvidia-cuda-runtime-cu12
"""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PRIORITY = 80
PR_SET_TIMERSLACK = 29
STACK_KIB = 32_768  # Holoscan refuses less


class Peer:
    """A process that measures hops of one runtime."""

    def __init__(self, kind: str, python: str) -> None:
        libraries = [
            str(p) for p in Path(python).parents[1].glob("lib/*/site-packages/nvidia/*/lib")
        ]
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
        command = f'ulimit -s {STACK_KIB}; exec "$0" "$@"'
        self._process = subprocess.Popen(  # noqa: S603 - the interpreter that the user names
            ["/bin/sh", "-c", command, python, __file__, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.version = self._answer()
        if self.version is None:
            self.close()
            raise SystemExit(f"{kind} does not start under {python}; tools/hop_peers.py says how")

    def hop(self, size_bytes: int, rate_hz: int, count: int, *, realtime: bool) -> list[int]:
        """Return the latencies of `count` messages, ns."""
        assert self._process.stdin is not None
        request = {"size": size_bytes, "rate": rate_hz, "count": count, "realtime": realtime}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        latencies = self._answer()
        if latencies is None:
            raise SystemExit("a peer ended in the middle of its run")
        return latencies

    def close(self) -> None:
        self._process.communicate()

    def _answer(self):  # noqa: ANN202 - what the other end wrote
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("="):  # the runtimes write there too
                return json.loads(line[1:])
        return None


def xronos_hop():  # noqa: ANN201 - the environment's own types
    """Return the version of xronos, and what measures a hop."""
    from importlib.metadata import version  # noqa: PLC0415

    import xronos  # noqa: PLC0415

    def sender_at(period):  # noqa: ANN001, ANN202
        class Sender(xronos.Reactor):
            timer = xronos.PeriodicTimerDeclaration(period=period)
            out = xronos.OutputPortDeclaration()

            def __init__(self, payload) -> None:  # noqa: ANN001
                super().__init__()
                self._payload = payload

            @xronos.reaction
            def send(self, context):  # noqa: ANN001, ANN202
                context.add_trigger(self.timer)
                out = context.add_effect(self.out)
                return lambda: out.set((time.monotonic_ns(), self._payload))

        return Sender

    class Receiver(xronos.Reactor):
        into = xronos.InputPortDeclaration()

        def __init__(self, latencies) -> None:  # noqa: ANN001
            super().__init__()
            self._latencies = latencies

        @xronos.reaction
        def receive(self, context):  # noqa: ANN001, ANN202
            into = context.add_trigger(self.into)

            def handler() -> None:
                sent_ns, _ = into.get()
                self._latencies.append(time.monotonic_ns() - sent_ns)

            return handler

    def hop(payload, rate_hz, count):  # noqa: ANN001, ANN202
        latencies: list[int] = []
        period = dt.timedelta(microseconds=1_000_000 // rate_hz)
        environment = xronos.Environment(timeout=(count - 1) * period)
        sender = environment.create_reactor("sender", sender_at(period), payload)
        receiver = environment.create_reactor("receiver", Receiver, latencies)
        environment.connect(sender.out, receiver.into)
        environment.execute()
        return latencies

    return version("xronos"), hop


def holoscan_hop():  # noqa: ANN201 - the environment's own types
    """Return the version of Holoscan, and what measures a hop under its greedy scheduler."""
    import holoscan  # noqa: PLC0415
    from holoscan.conditions import CountCondition, PeriodicCondition  # noqa: PLC0415
    from holoscan.core import Application, Operator  # noqa: PLC0415
    from holoscan.schedulers import GreedyScheduler  # noqa: PLC0415

    class Sender(Operator):
        def __init__(self, fragment, *conditions, payload, **keys) -> None:  # noqa: ANN001, ANN002, ANN003
            self._payload = payload
            super().__init__(fragment, *conditions, **keys)

        def setup(self, spec) -> None:  # noqa: ANN001
            spec.output("out")

        def compute(self, _inputs, output, _context) -> None:  # noqa: ANN001
            output.emit((time.monotonic_ns(), self._payload), "out")

    class Receiver(Operator):
        def __init__(self, fragment, **keys) -> None:  # noqa: ANN001, ANN003
            self.latencies: list[int] = []
            super().__init__(fragment, **keys)

        def setup(self, spec) -> None:  # noqa: ANN001
            spec.input("in")

        def compute(self, inputs, _output, _context) -> None:  # noqa: ANN001
            sent_ns, _ = inputs.receive("in")
            self.latencies.append(time.monotonic_ns() - sent_ns)

    class Hop(Application):
        def __init__(self, payload, rate_hz, count) -> None:  # noqa: ANN001
            self._payload, self._rate_hz, self._count = payload, rate_hz, count
            super().__init__()

        def compose(self) -> None:
            count = CountCondition(self, self._count)
            period = PeriodicCondition(self, recess_period=1_000_000_000 // self._rate_hz)
            sender = Sender(self, count, period, payload=self._payload, name="sender")
            self.receiver = Receiver(self, name="receiver")
            self.add_flow(sender, self.receiver, {("out", "in")})

    def hop(payload, rate_hz, count):  # noqa: ANN001, ANN202
        application = Hop(payload, rate_hz, count)
        application.scheduler(GreedyScheduler(application, name="greedy"))
        application.run()
        return application.receiver.latencies

    return holoscan.__version__, hop


def ask_for_realtime(*, realtime: bool) -> None:
    """Set this process up; threads that it starts take after it."""
    policy, priority = (os.SCHED_FIFO, PRIORITY) if realtime else (os.SCHED_OTHER, 0)
    os.sched_setscheduler(0, policy, os.sched_param(priority))
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1 if realtime else 0, 0, 0, 0)


def serve(kind: str) -> None:
    """Answer requests until there are no more."""
    version, hop = {"xronos": xronos_hop, "holoscan": holoscan_hop}[kind]()
    print("=" + json.dumps(version), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        ask_for_realtime(realtime=request["realtime"])
        gc.collect()
        gc.freeze()
        latencies = hop(bytes(request["size"]), request["rate"], request["count"])
        print("=" + json.dumps(latencies), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
