"""SimSo in a process of its own: task sets in, completion times and processor time out.

Runs under the interpreter that has SimSo (0.8.5 needs Python 3.11 and nothing of avrt): a request
is one JSON line, so is the answer. `Simso` is the other end, for the tools beside it.

Where SimSo 0.8.5 and avrt mean different things by the same words, the requests stay clear of it:

* times are whole cycles and a millisecond is one cycle, so no float time is cut short;
* its end of time is inclusive, avrt's is not: its is one cycle earlier;
* late jobs go on (SimSo aborts them unless told otherwise);
* what EDF prints at each decision is thrown away;
* equal priorities are resolved by the order of processors there, so `tied_apart` makes sets
  without any: deadlines that differ modulo the number of tasks, and periods that differ.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time

SCHEDULERS = {"edf": "simso.schedulers.EDF", "rm": "simso.schedulers.RM"}


class Simso:
    """A SimSo process, told task sets as `(wcet, period, deadline, offset)` in ns."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the interpreter that the user names
            [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._answer() != "ready":
            self.close()
            raise SystemExit(
                f"no SimSo under {python}; make an environment of Python 3.11, "
                "'pip install simso==0.8.5' there, and give its python with --simso"
            )

    def run(
        self, tasks: list[tuple[int, int, int, int]], slots: int, policy: str, until_ns: int
    ) -> tuple[list[list[int | None]], float]:
        """Return when each job of each task ended, None if not by then, and cpu seconds."""
        assert self._process.stdin is not None
        request = {"tasks": tasks, "slots": slots, "policy": policy, "until": until_ns}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        ends, cpu_s = self._answer()
        return ends, cpu_s

    def close(self) -> None:
        self._process.communicate()

    def _answer(self):  # noqa: ANN202 - what the other end wrote
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None


def tied_apart(count: int, times: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return `(wcet, period, deadline)` from wcets and periods so that no two jobs ever tie.

    Periods become different multiples of the number of tasks, and the deadline of task `i` one of
    them less `i`: an absolute deadline tells its task.
    """
    used: set[int] = set()
    found = []
    for index, (wcet, period) in enumerate(times):
        whole = max(2, -(-period // count))
        while whole in used:
            whole += 1
        used.add(whole)
        found.append((wcet, whole * count, whole * count - index))
    return found


def serve() -> None:
    """Answer requests until there are no more."""
    try:
        from simso.configuration import Configuration  # noqa: PLC0415
        from simso.core import Model  # noqa: PLC0415
    except ImportError:
        return
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        configuration = Configuration()
        configuration.cycles_per_ms = 1
        configuration.duration = request["until"] - 1
        for number, (wcet, period, deadline, offset) in enumerate(request["tasks"]):
            configuration.add_task(
                name=f"t{number}",
                identifier=number + 1,
                period=period,
                activation_date=offset,
                wcet=wcet,
                deadline=deadline,
                abort_on_miss=False,
            )
        for number in range(request["slots"]):
            configuration.add_processor(name=f"p{number}", identifier=number + 1)
        configuration.scheduler_info.clas = SCHEDULERS[request["policy"]]
        configuration.check_all()
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
            start = time.process_time()
            model = Model(configuration)
            model.run_model()
            cpu_s = time.process_time() - start
        tasks = sorted(model.results.tasks.items(), key=lambda item: item[0].identifier)
        ends = [[job.end_date for job in result.jobs] for _, result in tasks]
        print(json.dumps([ends, cpu_s]), flush=True)


if __name__ == "__main__":
    serve()
