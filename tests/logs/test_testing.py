"""A reader that breaks a rule is caught by the test of that rule: each test of the kit can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from avrt.errors import DamagedInputError, InputError
from avrt.logs import Series, SeriesReader
from avrt.logs.ros.types import TWIST
from avrt.logs.testing import DamagedLogContract, LogContract
from avrt.payload import Speed

TIMES = np.array([10, 20, 20, 30, 40, 50, 60], np.int64)


class Sound(SeriesReader):
    """A reader of two topics; `damaged` ones lose one message."""

    def __init__(self, *, damaged=False):
        def make(index):
            if damaged and index == 3:
                raise InputError("expected more", "the file")
            return Speed(float(index))

        super().__init__("a log", [self.series(name, make) for name in ("/a", "/b")])
        self.reads = 0

    def series(self, name, make):
        return Series(name, TWIST, "vehicle", TIMES, make)


class Unnamed(Sound):
    format = ""


class Backwards(Sound):
    def messages(self, topics=None):
        return reversed(list(super().messages(topics)))


class Overpromising(Sound):
    def topics(self):
        return {name: replace(info, messages=8) for name, info in super().topics().items()}


class Forgetful(Sound):
    def messages(self, topics=None):
        self.reads += 1
        found = super().messages(topics)
        return found if self.reads == 1 else list(found)[1:]


class Shared(Sound):
    """One place in the file for all who read."""

    def messages(self, topics=None):
        if self.reads == 0:
            self.iterator = super().messages(topics)
        self.reads += 1
        yield from self.iterator


class Unfiltered(Sound):
    def messages(self, topics=None):
        return super().messages(None if topics else topics)


class WrongTimes(Sound):
    def log_times(self):
        return {name: times + 1 for name, times in super().log_times().items()}


class Hoarding(Sound):
    def messages(self, topics=None):
        return iter(list(super().messages(topics)))


class Undecodable(Sound):
    def messages(self, topics=None):
        for raw in super().messages(topics):
            yield replace(raw, data=raw.data[:6])


class ClosedOnce(Sound):
    def close(self):
        self.reads += 1
        assert self.reads == 1


BREAKS = {
    Unnamed: "test_it_says_what_it_is",
    Backwards: "test_messages_come_in_the_order_of_their_log_times",
    Overpromising: "test_topics_tell_how_many_messages_there_are_and_of_which_type",
    Forgetful: "test_reading_again_gives_the_same",
    Shared: "test_two_readings_at_once_do_not_disturb_each_other",
    Unfiltered: "test_chosen_topics_come_alone_and_in_the_same_order",
    WrongTimes: "test_log_times_are_those_of_the_messages",
    Hoarding: "test_messages_that_were_taken_are_not_kept",
    Undecodable: "test_messages_of_known_types_can_be_decoded",
    ClosedOnce: "test_closing_twice_is_harmless",
}


def rules(contract):
    return [name for name in vars(contract) if name.startswith("test_")]


def check(contract, reader, rule, **options):
    judge = contract()
    judge.open_log = lambda _path: reader(**options)
    getattr(judge, rule)(None)


@pytest.mark.parametrize("rule", rules(LogContract))
def test_a_sound_reader_keeps_every_rule(rule):
    check(LogContract, Sound, rule)


@pytest.mark.parametrize(("reader", "rule"), BREAKS.items())
def test_a_reader_that_breaks_a_rule_is_caught(reader, rule):
    with pytest.raises((AssertionError, ValueError, InputError)):
        check(LogContract, reader, rule)


def test_every_rule_has_a_reader_that_breaks_it():
    assert set(BREAKS.values()) == set(rules(LogContract))
    assert set(DAMAGE.values()) == set(rules(DamagedLogContract))


class Silent(Sound):
    def messages(self, topics=None):
        try:
            yield from super().messages(topics)
        except InputError:
            return


class Uncounted(Sound):
    @property
    def anomalies(self):
        return [anomaly for anomaly in super().anomalies if anomaly.kind != "lost"]


class Mended(Sound):
    def messages(self, topics=None):
        self.reads += 1
        if self.reads > 1:
            return iter(Sound().messages(topics))
        return super().messages(topics)


DAMAGE = {
    Silent: "test_damage_is_told_after_everything_good",
    Uncounted: "test_delivered_and_lost_add_up_to_what_was_promised",
    Mended: "test_reading_again_tells_the_same",
}


@pytest.mark.parametrize("rule", rules(DamagedLogContract))
def test_a_sound_reader_tells_its_damage(rule):
    check(DamagedLogContract, Sound, rule, damaged=True)


@pytest.mark.parametrize(("reader", "rule"), DAMAGE.items())
def test_a_reader_that_hides_damage_is_caught(reader, rule):
    with pytest.raises(AssertionError):
        check(DamagedLogContract, reader, rule, damaged=True)


def test_the_sound_reader_is_damaged_as_it_says():
    found = []
    with pytest.raises(DamagedInputError):
        found.extend(Sound(damaged=True).messages())
    assert len(found) == 2 * len(TIMES) - 2
