"""Reports from the field of logs that were cut, altered, put together, or lack their index."""

import hashlib
import struct

import pytest

from avrt.errors import DamagedInputError
from avrt.logs.reader import open_log
from cases import field

REPORTS = (
    "LOG-01", "LOG-03", "LOG-05", "LOG-07", "LOG-09", "LOG-11",
    "LOG-13", "LOG-15", "LOG-17", "LOG-19", "LOG-21", "LOG-23",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return field.generated(tmp_path_factory.mktemp("logs"), "gen_a_log.py", REPORTS)


@pytest.fixture
def read(folder):
    """Return a function that reads a log: its messages, what ended it, and what was odd."""

    def messages_of(name, *, strict=False):
        found, damage = [], None
        with open_log(folder / name, strict=strict) as log:
            try:
                found.extend(log.messages())
            except DamagedInputError as error:
                damage = error
            return found, damage, list(log.anomalies)

    return messages_of


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_log_01_of_a_cut_log_all_that_is_whole_is_played_and_the_cut_is_told(folder, read):
    """The report asks for the chunks that are whole.

    Of the cut one the messages that are whole are played too: its check sum is gone with its end,
    so they are as good as those of a log without chunks, and the log is told to be damaged.
    """
    answer = field.answer(folder, "LOG-01")
    found, damage, _ = read("LOG-01_truncated.mcap")
    times = [message.log_ns for message in found]
    assert times == sorted(times)
    assert times[answer["messages"] - 1] == answer["last_log_time"]
    assert answer["messages"] <= len(found) < answer["messages"] + 50
    assert (damage.exit_code, damage.good_messages) == (3, len(found))
    assert f"byte {answer['cut_at']}" in str(damage)
    assert "LOG-01_truncated.mcap" in damage.place


def test_log_03_a_log_without_a_summary_is_read_like_one_with_it(folder, read):
    answer = field.answer(folder, "LOG-03")
    plain, damage, anomalies = read("LOG-03_nosummary.mcap")
    known, _, _ = read(answer["same_as"])
    assert len(plain) == answer["messages"]
    assert [(m.topic, m.log_ns, bytes(m.data)) for m in plain] == [
        (m.topic, m.log_ns, bytes(m.data)) for m in known
    ]
    assert sorted({message.topic for message in plain}) == answer["topics"]
    assert damage is None
    assert anomalies == []


def test_log_05_an_altered_chunk_is_left_out_and_told_and_what_follows_is_played(folder, read):
    answer = field.answer(folder, "LOG-05")
    found, damage, anomalies = read("LOG-05_badcrc.mcap")
    first, last = answer["lost_range"]
    assert len(found) == answer["messages"]
    assert not [message for message in found if first <= message.log_ns <= last]
    assert max(message.log_ns for message in found) > last
    assert "expected a chunk with CRC" in str(damage)
    assert [(a.topic, a.count) for a in anomalies if a.kind == "lost"] == [("/a", 40)]
    found, damage, _ = read("LOG-05_badcrc.mcap", strict=True)
    assert answer["strict"] == "error"
    assert len(found) == damage.good_messages == 80
    assert f"there lie /a from {first} to {last} ns" in str(damage)


@pytest.mark.parametrize(
    ("report", "name"),
    [
        ("LOG-07", "LOG-07_zstd_nosize.mcap"),
        ("LOG-13", "LOG-13_nometa"),
        ("LOG-15", "LOG-15_wal"),
        ("LOG-17", "LOG-17_splitmeta"),
        ("LOG-19", "LOG-19_renamed"),
    ],
)
def test_all_messages_are_there_and_the_log_is_left_as_it_was(folder, read, report, name):
    paths = sorted(path for path in (folder / name).rglob("*.db3*") if path.is_file())
    before = [(path, hash_of(path)) for path in paths]
    found, damage, _ = read(name)
    assert len(found) == field.answer(folder, report)["messages"]
    assert damage is None
    times = [message.log_ns for message in found]
    assert times == sorted(times)
    after = sorted(path for path in (folder / name).rglob("*.db3*") if path.is_file())
    assert [(path, hash_of(path)) for path in after] == before


def test_log_17_times_are_those_of_the_messages(folder, read):
    answer = field.answer(folder, "LOG-17")
    found, _, _ = read("LOG-17_splitmeta")
    assert found[0].log_ns == answer["start"]
    assert found[-1].log_ns - found[0].log_ns == answer["duration_ns"]


def test_log_09_each_message_is_of_its_own_channel(folder, read):
    answer = field.answer(folder, "LOG-09")
    found, _, _ = read("LOG-09_sharedtopic.mcap")
    kinds = {message.channel.id: message.type.rpartition("/")[2] for message in found}
    assert sorted(kinds.values()) == ["Float64", "String"]
    counts = dict.fromkeys(kinds.values(), 0)
    for message in found:
        counts[kinds[message.channel.id]] += 1
    assert counts == {"Float64": len(answer["float64"]), "String": len(answer["string"])}


def test_log_11_chunks_that_overlap_are_played_in_the_order_of_log_time(folder, read):
    found, _, _ = read("LOG-11_overlap.mcap")
    assert len(found) == field.answer(folder, "LOG-11")["messages"]
    times = [message.log_ns for message in found]
    assert times == sorted(times)
    assert [message.topic for message in found] == ["/a", "/b"] * 100


def test_log_21_a_type_that_nobody_knows_refuses_nothing_else(folder, read):
    answer = field.answer(folder, "LOG-21")
    found, damage, _ = read("LOG-21_unknowntype")
    counts = {topic: sum(m.topic == topic for m in found) for topic in ("/odom", "/vendor")}
    assert counts == {"/odom": answer["/odom"], "/vendor": answer["/vendor"]["count"]}
    assert damage is None
    assert all(len(message.data) for message in found)


def test_log_23_runs_in_one_log_are_told_apart_and_played_one_after_another(read, folder):
    answer = field.answer(folder, "LOG-23")
    found, damage, anomalies = read("LOG-23_tworuns.mcap")
    values = [struct.unpack_from("<d", message.data, 4)[0] for message in found]
    runs = [[v for m, v in zip(found, values, strict=True) if m.run == run] for run in (0, 1)]
    assert values == [*runs[0], *runs[1]]
    assert [(run[0], run[-1], len(run)) for run in runs] == [
        (*answer["run1"], 40),
        (*answer["run2"], 40),
    ]
    (told,) = anomalies
    assert (told.kind, told.count) == ("runs", answer["instances"])
    assert damage is None
