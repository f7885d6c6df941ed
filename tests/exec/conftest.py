"""A system that gives and refuses what a test tells it to, and remembers what it was asked for."""

import errno
import os

import pytest

from avrt.exec.system import System


class FakeSystem(System):
    """Grants everything but what `refuses` names, with the error it names."""

    def __init__(
        self, root, *, limits=(), capabilities=(), refuses=(), status=(), library="glibc 2"
    ):
        super().__init__(root)
        self.limits = dict(limits)
        self.capabilities = set(capabilities)
        self.refuses = dict(refuses)
        self.lines = dict(status)
        self.library = library
        self.asked = []
        self.policy, self.priority = os.SCHED_OTHER, 0
        self.allowed = frozenset({0, 1, 2, 3})
        self.slack_ns = 50_000
        self.takes_allocator = True

    def ask(self, name, *values):
        self.asked.append((name, *values))
        if name in self.refuses:
            number = self.refuses[name]
            raise OSError(number, os.strerror(number))

    def scheduling(self):
        self.ask("scheduling")
        return self.policy, self.priority

    def set_scheduling(self, policy, priority):
        self.ask("set_scheduling", policy, priority)
        self.policy, self.priority = policy, priority

    def cpus(self):
        return self.allowed

    def set_cpus(self, cpus):
        self.ask("set_cpus", tuple(sorted(cpus)))
        self.allowed = frozenset(cpus)

    def timer_slack_ns(self):
        return self.slack_ns

    def set_timer_slack(self, slack_ns):
        self.ask("set_timer_slack", slack_ns)
        self.slack_ns = slack_ns

    def lock_memory(self, flags):
        self.ask("lock_memory", flags)

    def unlock_memory(self):
        self.ask("unlock_memory")

    def set_allocator(self, parameter, value):
        self.ask("set_allocator", parameter, value)
        return self.takes_allocator

    def c_library(self):
        return self.library

    def limit(self, name):
        return self.limits.get(name)

    def raise_limit(self, name):
        self.ask("raise_limit", name)
        self.limits[name] = (self.limits[name][1],) * 2

    def status(self, key):
        return self.lines.get(key, "")

    def has_capability(self, capability):
        return capability in self.capabilities


@pytest.fixture
def make_system(tmp_path):
    """Return a function that makes a fake system over kernel files given by path."""

    def make(files=(), **options):
        for path, text in dict(files).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return FakeSystem(tmp_path, **options)

    return make


@pytest.fixture
def refusing(make_system):
    """A system that refuses whatever needs a right, as one without privileges does."""
    return make_system(
        limits={"RLIMIT_RTPRIO": (0, 0), "RLIMIT_MEMLOCK": (8 << 20, 8 << 20)},
        status={"VmSize": "700000 kB", "VmLck": "0 kB"},
        refuses={"set_scheduling": errno.EPERM, "lock_memory": errno.EPERM},
    )
