"""What a message says it is: by the first good one, and by frames of others."""

import pytest
from facts import started

from avrt.model.guard import GuardSpec
from avrt.model.spec import SourceSpec
from avrt.safety.identity import Identity, KnownIdentity, frames_of_others

OWN = Identity("image", "front", "rgb8 100")


def source(name, frame=""):
    return SourceSpec(name=name, type="lidar", topic=f"/{name}", frame=frame)


def known(*frames):
    made = KnownIdentity(frames)
    made.learn(OWN)
    return made


@pytest.mark.parametrize("field", Identity._fields)
def test_the_first_good_message_says_what_a_source_is(field):
    other = OWN._replace(**{field: "another"})
    assert known().is_foreign(other)
    assert not known().is_foreign(OWN)
    made = known()
    made.learn(other)
    assert not made.is_foreign(OWN)


def test_before_that_only_frames_of_others_are_foreign():
    made = KnownIdentity({"left"})
    assert made.is_foreign(OWN._replace(frame="left"))
    assert not made.is_foreign(OWN)


def test_a_frame_is_another_ones_if_that_one_has_it_and_this_one_has_its_own():
    sources = [source("a", "front"), source("b", "left"), source("c", "front"), source("d")]
    others = [frames_of_others(one, sources) for one in sources]
    assert others == [{"left"}, {"front"}, {"left"}, set()]


def test_three_messages_of_another_sensor_put_a_sensor_out_until_its_own_are_back():
    sender = started()
    sender.send(1)
    assert sender.send(3, said=OWN) == ["foreign"] * 3
    assert sender.states == [("foreign", 1500)]
    sender.send(3, said=OWN)
    assert sender.send(11) == ["order", *["out"] * 9, ""]  # its counter has gone on by six
    assert sender.states[1:] == [("ok", 2900)]


def test_foreign_messages_in_between_harm_no_others():
    sender = started()
    for _ in range(20):
        assert sender.send(1, said=OWN, counter=7, fingerprint=3, after_ns=0) == ["foreign"]
        sender.count -= 1
        assert sender.send(1) == [""]
    assert sender.states == []


def test_a_sensor_that_is_out_comes_back_in_spite_of_foreign_messages():
    sender = started()
    sender.send(3, damaged=True)
    for _ in range(10):
        sender.send(1, said=OWN, after_ns=0)
        sender.count -= 1
        sender.send(1)
    assert sender.reasons[-2:] == ["foreign", ""]


def test_nothing_is_foreign_where_the_check_is_off():
    sender = started(spec=GuardSpec(foreign=0))
    assert sender.send(3, said=OWN) == [""] * 3
