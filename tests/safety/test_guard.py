"""The guard of a source: one example of each fault, and what must hold whatever comes."""

import dataclasses
from math import prod

import numpy as np
import pytest
from facts import BLACK, FINE, MS, PERIOD_NS, Sender, guard_of, started
from hypothesis import given
from hypothesis import strategies as st

from avrt.config.guard import DEFAULTS
from avrt.model.guard import IN_USE, GuardSpec
from avrt.safety.content import Content
from avrt.safety.guard import Facts, Guard

S = 1000 * MS

# What comes late, twice, in the wrong order or not at all


def test_one_lost_message_is_told_and_changes_nothing():
    sender = started()
    sender.lose()
    assert sender.send(5) == [""] * 5
    assert (sender.missing, sender.states) == (1, [])


def test_what_is_rejected_is_not_missing():
    sender = started()
    sender.send(2, **BLACK)
    sender.send(1)
    sender.send(1, fingerprint=sender.count, capture_ns=sender.now_ns, after_ns=0)
    assert sender.send(1) == [""]
    assert sender.missing == 0


def test_a_burst_of_five_lost_ones_is_known_after_three_periods_and_ten_good_ones_bring_it_back():
    sender = started()
    sender.lose(5)
    assert sender.send(11) == ["out"] * 9 + [""] * 2
    assert sender.states == [("lost", 1400), ("ok", 2600)]


def test_silence_is_known_at_a_known_time_though_nothing_comes():
    sender = started()
    guard = sender.guard
    assert guard.alarm_ns == 1400 * MS
    assert guard.until(1400 * MS - 1) == ()
    (change,) = guard.until(5 * S)
    assert (change.state, change.was, change.at_ns) == ("lost", "ok", 1400 * MS)
    assert guard.alarm_ns is None
    assert guard.until(6 * S) == ()


def test_a_sensor_that_never_comes_is_lost_after_three_periods():
    assert guard_of().until(S)[0].at_ns == 300 * MS


def test_a_fast_sensor_is_not_lost_when_a_host_stalls_for_some_of_its_periods():
    assert guard_of(period_ns=10 * MS).alarm_ns == 100 * MS


def test_a_declared_latency_is_no_silence():
    guard = Guard("it", DEFAULTS["lidar"], PERIOD_NS, 80 * MS)
    assert guard.alarm_ns == 380 * MS


def test_stamps_and_arrivals_may_jitter():
    """Ten thousand messages at 30 Hz, stamps and arrivals within 8 ms of their time each."""
    guard = Guard("it", DEFAULTS["camera"], 33_333_333)
    shifts = np.random.default_rng(0).integers(-8 * MS, 8 * MS, (10_000, 2))
    for count, (captured, came) in enumerate(shifts.tolist()):
        nominal_ns = count * 33_333_333 + 10 * MS
        content = Content(1000, 0, count, **FINE)
        facts = Facts(nominal_ns + 20 * MS + came, nominal_ns + captured, content, count)
        assert guard.take(facts) == ("", 0, ())


def test_a_sensor_that_comes_late_is_ok_with_its_first_good_message():
    sender = Sender(guard_of())
    sender.lose(10)
    assert sender.send(2) == ["", ""]
    assert sender.states == [("lost", 300), ("ok", 1100)]


def test_a_sensor_whose_first_message_is_bad_has_to_come_back():
    sender = Sender(guard_of())
    sender.lose(10)
    sender.send(1, **BLACK)
    assert sender.send(10) == ["out"] * 9 + [""]


def test_without_a_declared_rate_no_silence_is_known_and_nothing_comes_too_often():
    sender = started(period_ns=None)
    assert sender.guard.alarm_ns is None
    assert sender.send(1, after_ns=9 * S) == [""]
    assert sender.send(50, after_ns=MS) == [""] * 50


def test_good_ones_before_a_silence_do_not_count():
    sender = started()
    sender.lose(5)
    sender.send(9)
    sender.lose(5)
    assert sender.send(10) == ["out"] * 9 + [""]


def test_a_message_sent_twice_is_processed_once():
    sender = started()
    assert sender.send(1, counter=sender.count, after_ns=MS) == ["repeated"]
    sender.count -= 1
    assert sender.send(5) == [""] * 5
    assert sender.states == []


def test_messages_that_all_come_twice_are_each_processed_once_and_still_bring_a_sensor_back():
    sender = Sender(guard_of(), counting=False)
    sender.send(1)
    sender.lose(5)
    told = []
    for number in range(12):
        told += sender.send(1, fingerprint=number)
        told += sender.send(1, fingerprint=number, capture_ns=sender.now_ns, after_ns=0)
    assert told == ["out", "repeated"] * 9 + ["", "repeated"] * 3
    assert [state for state, _ in sender.states] == ["lost", "ok"]


def test_the_same_message_again_and_again_puts_the_sensor_out():
    sender = started()
    told = [sender.send(1, fingerprint=11, capture_ns=1100 * MS)[0] for _ in range(3)]
    assert told == ["repeated"] * 3
    assert [state for state, _ in sender.states] == ["repeated"]


def test_a_frozen_counter_puts_the_sensor_out():
    sender = started()
    assert sender.send(5, counter=11) == ["repeated"] * 5
    assert sender.states == [("repeated", 1400)]


def test_of_a_swapped_pair_the_older_is_dropped():
    sender = started()
    told = [sender.send(1, counter=counter) for counter in (13, 12, 14)]
    assert told == [[""], ["order"], [""]]
    assert sender.missing == 1


def test_a_counter_that_skips_too_many_is_out_of_order_until_it_is_followed():
    sender = started(period_ns=None)
    sender.lose(4)
    assert sender.send(3) == ["order"] * 3
    assert sender.send(10) == ["out"] * 9 + [""]
    assert [state for state, _ in sender.states] == ["order", "ok"]


def test_a_sender_that_begins_anew_is_followed():
    sender = started()
    sender.count = 0
    assert sender.send(13) == ["order"] * 3 + ["out"] * 9 + [""]


def test_the_counter_goes_round():
    sender = Sender(guard_of(period_ns=None))
    sender.count = (1 << 32) - 13
    told = [sender.send(1, counter=(sender.count + 1) % (1 << 32))[0] for _ in range(20)]
    assert told == [""] * 20


@pytest.mark.parametrize("counters", [[7] * 30, list(range(0, 300, 7)), [3, 1, 2] * 10])
def test_what_is_no_counter_is_not_believed(counters):
    sender = Sender(guard_of())
    assert [sender.send(1, counter=counter)[0] for counter in counters] == [""] * len(counters)
    assert sender.missing == 0


def test_a_stamp_before_the_last_is_out_of_order_but_for_a_clocks_rounding():
    sender = started()
    assert sender.send(1, capture_ns=1100 * MS - MS) == [""]  # 85 us would be less
    assert sender.send(1, capture_ns=1000 * MS) == ["order"]
    assert sender.states == []


@pytest.mark.parametrize("off_ns", [S + 1, -S - 1])
def test_a_message_that_is_too_old_or_of_the_future_is_rejected(off_ns):
    sender = Sender(guard_of())
    sender.now_ns = 2 * S
    sender.guard.until(2 * S)
    assert sender.send(1, capture_ns=sender.now_ns + PERIOD_NS - off_ns) == ["age"]


def test_a_clock_that_jumps_costs_one_message():
    sender = started()
    assert sender.send(1, jumped=True) == ["clock"]
    assert sender.send(5) == [""] * 5
    assert sender.states == []


def test_a_log_played_again_is_no_fault():
    sender = started()
    sender.count = 0
    assert sender.send(20, epoch=1) == [""] * 20
    assert (sender.states, sender.missing) == ([], 0)


def test_twice_the_rate_is_thinned_to_what_is_allowed():
    sender = started()
    told = sender.send(400, after_ns=PERIOD_NS // 2)
    assert set(told) == {"", "early"}
    assert told.index("early") <= 12
    delivered = told.count("")
    assert 20 * 12 <= delivered <= 20 * 12 + 12  # 1.2 times 10 Hz in 20 s, and the burst
    assert sender.states == []


def test_a_fifth_too_many_are_let_through_and_so_is_jitter():
    sender = started()
    assert sender.send(300, after_ns=PERIOD_NS * 5 // 6 + 1) == [""] * 300
    for late in (40, 160) * 50:
        assert sender.send(1, after_ns=late * MS) == [""]


# What is in them


@pytest.mark.parametrize("content", [BLACK, {"level": 240.0}, {"spread": 1.0}])
def test_three_blind_images_put_a_camera_out_and_not_one_is_delivered(content):
    sender = started()
    assert sender.send(5, **content) == ["blind"] * 5
    assert sender.states == [("blind", 1400)]
    assert sender.send(10) == ["out"] * 9 + [""]
    assert sender.states[-1] == ("ok", 2600)


def test_one_blind_image_is_dropped_and_the_camera_stays():
    sender = started()
    assert [*sender.send(2, **BLACK), *sender.send(2), *sender.send(2, **BLACK)] == [
        "blind", "blind", "", "", "blind", "blind",
    ]  # fmt: skip
    assert sender.states == []


def test_an_image_that_is_the_one_before_is_stuck():
    sender = started()
    sender.send(1, fingerprint=7)
    assert sender.send(5, fingerprint=7) == ["stuck"] * 5
    assert sender.states == [("stuck", 1500)]
    assert sender.send(10) == ["out"] * 9 + [""]


def test_a_still_vehicle_has_a_speed_that_stays_the_same():
    sender = started("can")
    assert sender.send(500, fingerprint=7, after_ns=PERIOD_NS) == [""] * 500


def test_bad_ones_of_different_reasons_count_together():
    sender = started()
    sender.send(1, **BLACK)
    sender.send(1, damaged=True)
    assert sender.states == []
    sender.send(1, size=0)
    assert sender.states == [("empty", 1400)]


def test_an_image_that_cannot_be_decoded_is_rejected():
    assert started().send(1, damaged=True) == ["damaged"]


@pytest.mark.parametrize(
    ("size", "nonfinite", "reason"),
    [
        (0, 0, "empty"),
        (1, 0, "empty"),
        (2, 0, ""),
        (2_000_000, 0, ""),
        (2_000_001, 0, "huge"),
        (1000, 20, ""),
        (1000, 500, ""),
        (1000, 501, "nonfinite"),
    ],
)
def test_a_cloud_has_points_and_most_of_them_are_numbers(size, nonfinite, reason):
    assert started("lidar").send(1, size=size, nonfinite=nonfinite) == [reason]


def doubled(sender, times, **more):
    """Let another one write, at the time of the sensor's own last message."""
    told = sender.send(times, writer="b", after_ns=0, capture_ns=7, counter=9, **more)
    sender.count -= times
    return told


@given(st.lists(st.integers(0, 4), min_size=5, max_size=40))
def test_while_one_writes_the_messages_of_others_change_nothing(counts):
    alone, both = Sender(guard_of()), Sender(guard_of())
    for count in counts:
        assert alone.send(1, writer="a") == both.send(1, writer="a") == [""]
        assert doubled(both, count) == ["double"] * count
        assert alone.guard.alarm_ns == both.guard.alarm_ns
    assert (both.states, both.missing) == ([], 0)


def test_another_one_may_write_once_the_first_is_silent():
    sender = Sender(guard_of())
    assert sender.send(11, writer="a") == [""] * 11
    assert sender.send(2, writer="b") == ["double"] * 2
    assert sender.states == []
    assert sender.send(10, writer="b") == ["out"] * 9 + [""]
    assert sender.states == [("lost", 1400), ("ok", 2300)]
    assert sender.send(1, writer="a") == ["double"]


def test_who_writes_first_is_said_by_a_good_message():
    sender = Sender(guard_of())
    assert sender.send(2, writer="b", damaged=True) == ["damaged"] * 2
    assert sender.send(2, writer="a") == ["", ""]
    assert doubled(sender, 1) == ["double"]


@pytest.mark.parametrize("given", [{"period_ns": None}, {"spec": GuardSpec(silent=0)}])
def test_where_nobody_can_say_that_one_is_silent_all_may_write(given):
    sender = Sender(guard_of(**given))
    assert [*sender.send(3, writer="a"), *sender.send(3, writer="b")] == [""] * 6


def test_a_lidar_whose_times_are_mixed_up_is_out_once_it_is_known_to_spin():
    sender = started("lidar")
    assert sender.send(9, turning=1.0) == [""] * 9
    assert sender.send(3, turning=0.0) == [""] * 3
    sender.send(10, turning=1.0)
    assert sender.send(3, turning=0.0) == ["mixed"] * 3
    assert sender.states == [("mixed", 3600)]
    assert sender.send(10, turning=1.0) == ["out"] * 9 + [""]


def test_a_lidar_whose_times_are_not_asked_for_may_mix_them():
    sender = started(spec=GuardSpec())
    sender.send(20, turning=1.0)
    assert sender.send(3, turning=0.0) == [""] * 3


def test_a_covered_lens_is_told_after_a_second_and_its_images_are_delivered():
    sender = started()
    spreads = (1.0,) * 10 + (30.0,) * 15
    assert sender.send(15, spreads=spreads) == [""] * 15
    assert sender.states == [("blocked", 2200)]
    assert sender.send(12) == [""] * 12
    assert sender.states == [("blocked", 2200), ("ok", 3600)]


def test_a_lidar_that_sees_in_fewer_directions_than_it_did_is_told_at_once():
    sender = started(spec=GuardSpec(covered=0.1, covered_ns=0))
    sender.send(3, sectors=20)
    sender.send(3, sectors=36)
    sender.send(1, sectors=33)
    assert sender.states == []
    assert sender.send(1, sectors=32) == [""]
    assert [state for state, _ in sender.states] == ["blocked"]
    sender.send(12, sectors=33)
    assert [state for state, _ in sender.states] == ["blocked", "ok"]


def test_a_covered_lens_may_go_blind():
    sender = started()
    sender.send(15, spreads=(1.0,) * 25)
    sender.send(3, **BLACK)
    assert [state for state, _ in sender.states] == ["blocked", "blind"]


def test_a_lost_sensor_that_comes_back_bad_is_named_for_it():
    sender = started()
    sender.lose(5)
    sender.send(5, **BLACK)
    assert [state for state, _ in sender.states] == ["lost", "blind"]


def test_what_is_switched_off_finds_nothing():
    off = GuardSpec(
        silent=0, age_ns=0, faster=0.0, least=0, most=0, nonfinite=0.0, stuck=0, blind=0, covered=0
    )
    sender = started(spec=off)
    assert sender.send(20, fingerprint=1, size=0, nonfinite=9, **BLACK) == [""] * 20
    assert sender.send(1, after_ns=9 * S, capture_ns=5 * S) == [""]
    assert sender.send(99, after_ns=1) == [""] * 99
    assert sender.guard.alarm_ns is None


# Whatever comes

CHOICES = {
    "after": (100, 100, 100, 1, 50, 150, 250, 500),
    "count": (1, 1, 1, 0, 2, 6, -1),
    "print": (None, None, 7),
    "level": (100.0, 100.0, 100.0, 1.0),
    "spread": (30.0, 30.0, 1.0),
    "size": (1000, 1000, 1000, 0),
    "back": (0, 0, 0, 20, 2000),
    "jumped": (False,) * 9 + (True,),
    "epoch": (0,) * 20 + (1,),
}
MESSAGES = st.lists(st.integers(0, prod(map(len, CHOICES.values())) - 1), max_size=40)


def chosen(number):
    """Return the message that a number stands for."""
    item = {}
    for name, choices in CHOICES.items():
        number, place = divmod(number, len(choices))
        item[name] = choices[place]
    return item


LIMITS = st.builds(
    lambda bad, back, silent: dataclasses.replace(
        DEFAULTS["camera"], bad=bad, stuck=bad, blind=bad, back=back, silent=silent
    ),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(0, 4),
)


def play(messages, spec):
    """Return (facts, verdict, state) of each message."""
    guard = guard_of(spec=spec)
    at_ns = counter = epoch = 0
    told = []
    for number, item in enumerate(map(chosen, messages)):
        at_ns += item["after"] * MS
        counter += item["count"]
        epoch += item["epoch"]
        fingerprint = number + 100 if item["print"] is None else item["print"]
        content = Content(item["size"], 0, fingerprint, item["level"], 40.0, (item["spread"],) * 25)
        facts = Facts(
            at_ns, at_ns - item["back"] * MS, content, counter % 2**32, item["jumped"], epoch
        )
        told.append((facts, guard.take(facts), guard.state))
    return told


@given(MESSAGES, LIMITS)
def test_a_sensor_that_is_out_delivers_nothing(messages, spec):
    for _, verdict, state in play(messages, spec):
        assert verdict.reason or state in IN_USE


@given(MESSAGES, LIMITS)
def test_it_is_back_only_after_enough_good_ones_in_a_row(messages, spec):
    good = last_ns = 0
    has_come = False
    for facts, verdict, _ in play(messages, spec):
        silent = spec.silent and facts.at_ns - last_ns >= spec.silent * PERIOD_NS
        if silent or verdict.reason not in {"", "out", "early", "repeated"}:
            good = 0
        good += verdict.reason in {"", "out", "early"}
        last_ns = facts.at_ns
        for change in verdict.changes:
            if change.state == "ok" and change.was not in IN_USE:
                assert good >= (spec.back if has_come else 1)
        has_come = True


@given(MESSAGES, LIMITS)
def test_it_goes_out_only_after_enough_bad_ones_in_a_row_or_in_silence(messages, spec):
    bad = 0
    for _, verdict, _ in play(messages, spec):
        bad = bad + 1 if verdict.reason not in {"", "out", "early"} else 0
        for change in verdict.changes:
            if change.state not in {*IN_USE, "lost"}:
                assert bad >= spec.bad


@given(MESSAGES, LIMITS)
def test_changes_follow_each_other_in_time(messages, spec):
    changes = [change for _, verdict, _ in play(messages, spec) for change in verdict.changes]
    states = ["ok", *(change.state for change in changes)]
    assert [change.was for change in changes] == states[:-1]
    times = [change.at_ns for change in changes]
    assert times == sorted(times)
    assert all(change.state != change.was for change in changes)


@given(MESSAGES, LIMITS)
def test_equal_messages_have_equal_verdicts(messages, spec):
    assert play(messages, spec) == play(messages, spec)


@given(MESSAGES, LIMITS, st.lists(st.integers(0, 400), max_size=20))
def test_being_told_the_time_in_between_changes_nothing(messages, spec, ticks_ms):
    """A live run learns of silence from ticks, a replay from other messages: all the same."""
    alone = [change for _, verdict, _ in play(messages, spec) for change in verdict.changes]
    guard = guard_of(spec=spec)
    told = []
    ticks = sorted(sum(ticks_ms[:i]) * MS for i in range(len(ticks_ms)))
    for facts, _, _ in play(messages, spec):
        while ticks and ticks[0] <= facts.at_ns:
            told += guard.until(ticks.pop(0))
        told += guard.take(facts).changes
    assert told == alone
