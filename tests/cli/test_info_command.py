"""`avrt info`: what it prints, what it writes, and the code it exits with."""

import pytest

from avrt.logs.writer import LogWriter


def test_topics_and_what_was_read_are_shown(call, make_drive):
    done = call("info", make_drive(5))
    assert (done.code, done.err) == (0, "")
    for part in ("MCAP", "5 messages", "/lidar", "sensor_msgs/msg/PointCloud2", "read: all 5"):
        assert part in done.out


def test_json_is_one_object(call, make_drive):
    found = call("info", make_drive(5), "--json").data
    (topic,) = found["topics"]
    assert (topic["topic"], topic["read_as"], topic["messages"]) == ("/lidar", "lidar", 5)
    assert found["read"] == {
        "messages": 5, "to_ns": found["last_ns"], "complete": True, "indexed": False,
    }  # fmt: skip


def test_a_damaged_log_exits_3_and_one_that_cannot_be_used_4(call, make_drive, tmp_path):
    path = make_drive(50)
    path.write_bytes(path.read_bytes()[:-20])
    done = call("info", path)
    assert done.code == 3
    assert "damaged in file" in done.out
    empty = tmp_path / "empty.mcap"
    empty.touch()
    assert call("info", empty).code == 4
    assert call("info", tmp_path / "none.mcap").code == 4


def test_the_pipeline_that_is_written_is_the_one_that_replay_runs(call, make_drive, tmp_path):
    log, path = make_drive(5), tmp_path / "fits.yaml"
    assert call("info", log, "--pipeline", path).code == 0
    given = call("replay", log, "-p", path, "--json").data
    made = call("replay", log, "--json")
    assert made.data["digests"] == given["digests"]
    assert made.err.startswith("avrt: made to fit ")


@pytest.mark.parametrize("what", ["the log", "a file that is there"])
def test_a_pipeline_is_never_written_over_something(call, make_drive, tmp_path, what):
    log = make_drive(5)
    path = log if what == "the log" else tmp_path / "mine.yaml"
    if path != log:
        path.write_text("mine")
    before = path.read_bytes()
    assert call("info", log, "--pipeline", path).code == 2
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_log_whose_name_is_no_utf_8_is_shown_and_replayed(call, make_drive, tmp_path):
    log = make_drive(5).rename(tmp_path / "a\udcff.mcap")
    assert call("info", log).out.startswith(r"a\udcff.mcap: MCAP")
    assert call("replay", log, "-o", tmp_path / "run.mcap", "--json").code == 0
    assert call("replay", log, "--report", tmp_path / "run.html", "--json").code == 0


def test_a_pipeline_that_cannot_be_written_is_told_by_its_name(call, make_drive, tmp_path):
    path = tmp_path / "none" / "fits.yaml"
    done = call("info", make_drive(5), "--pipeline", path)
    assert (done.code, done.err) == (2, f"avrt: cannot write {path}: No such file or directory\n")


def test_names_that_a_terminal_would_obey_are_escaped(call, tmp_path):
    path = tmp_path / "a.mcap"
    with LogWriter(path) as log:
        for at_ns in (1, 2**63):
            log.add_raw("/\x1b[31mred\n", "std_msgs/msg/String", at_ns, b"")
    done = call("info", path, "--pipeline", tmp_path / "fits.yaml")
    assert done.code == 2
    assert r"log_time in /\x1b[31mred\n: " in done.out
    assert "\x1b" not in done.out + done.err
    assert call("info", path, "--json").data["topics"][0]["topic"] == "/\x1b[31mred\n"
