"""`avrt replay`: what it prints, what it refuses, and the code it exits with."""

import numpy as np
import pytest

from avrt.logs.writer import LogWriter

READERS = ("verify", "report")


def damage(path, share=0.5):
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 0xFF
    path.write_bytes(bytes(data))
    return path


def only_line(text):
    assert text.startswith("avrt: ")
    assert text.endswith("\n")
    assert "Traceback" not in text
    return text


def test_a_replay_shows_a_table_and_writes_a_record(call, make_drive, write_pipeline, tmp_path):
    done = call("replay", make_drive(5), "-p", write_pipeline(), "-o", tmp_path / "run.mcap")
    assert (done.code, done.err) == (0, "")
    for part in ("small", "5 jobs: 5 met", "decisions ", "modelled", "measured here", "run.mcap"):
        assert part in done.out
    assert (tmp_path / "run.mcap").exists()


def test_a_replay_begins_where_it_is_told_to(call, make_drive, write_pipeline):
    log, pipeline = make_drive(5), write_pipeline()
    data = call("replay", log, "-p", pipeline, "--start", "300 ms", "--json").data
    assert data["jobs"]["released"] == 2
    assert data["log"]["topics"]["/lidar"]["unread"] == 3
    assert data["conditions"]["start"] == "300 ms"


@pytest.mark.parametrize(
    ("start", "what"),
    [
        ("3", "start: expected a duration with its unit"),
        ("9 s", "start: nothing of the sources' topics comes later than 9 s"),
    ],
)
def test_a_start_that_is_none_is_refused(call, make_drive, write_pipeline, start, what):
    done = call("replay", make_drive(5), "-p", write_pipeline(), "--start", start)
    assert done.code == 2
    assert what in only_line(done.err)


def test_json_is_one_object_even_if_stages_print(call, make_drive, write_pipeline, tmp_path):
    (tmp_path / "prints.py").write_text(
        "print('a module prints')\ndef it(cloud):\n  print('a stage prints')\n  return 1\n"
    )
    path = write_pipeline(run="prints.py:it")
    for arguments in (("replay", make_drive(5), "-p", path), ("check", path)):
        assert call(*arguments, "--json").data["pipeline"] == "small"


def test_json_stays_clean_while_the_table_lets_stages_print(call, make_drive, write_pipeline):
    path, drive = write_pipeline(), make_drive(5)
    done = call("replay", drive, "-p", path, "--json")
    assert done.data["jobs"]["met"] == 5
    assert done.err == "a stage prints\n" * 5
    assert call("replay", drive, "-p", path).out.startswith("a stage prints\n")


@pytest.mark.parametrize("on_miss", ["continue", "abort", "skip_next"])
def test_a_miss_exits_1_only_where_it_is_asked_for(call, make_drive, write_pipeline, on_miss):
    path = write_pipeline(wcet="60 ms", more=f", on_miss: {on_miss}")
    drive = make_drive(5)
    assert call("replay", drive, "-p", path).code == 0
    assert call("replay", drive, "-p", path, "--fail-on-miss").code == 1
    assert call("replay", drive, "-p", path, "--fail-on-miss", "--json").data["misses"] == 5
    good = write_pipeline(name="good.yaml")
    assert call("replay", drive, "-p", good, "--fail-on-miss").code == 0


def test_a_hard_guarantee_exits_1_in_any_case(call, make_drive, write_pipeline):
    path = write_pipeline(wcet="60 ms", more=", guarantee: hard")
    assert call("replay", make_drive(5), "-p", path).code == 1


def test_a_stage_that_fails_is_told_and_the_run_goes_on(call, make_drive, write_pipeline):
    done = call("replay", make_drive(5), "-p", write_pipeline(run="stages.py:fails"))
    assert done.code == 0
    assert "fault it: exception (5x)" in done.out
    assert "it: first fault exception: ValueError: boom at " in done.out.replace("\n", " ")


def test_a_damaged_log_exits_3_after_its_good_part(call, make_drive, write_pipeline):
    drive = damage(make_drive(60, points=40, chunk_bytes=2000))
    done = call("replay", drive, "-p", write_pipeline(), "--json")
    assert done.code == 3
    assert 0 < done.data["jobs"]["met"] < 60
    assert done.data["damage"]


def test_a_damaged_log_that_is_to_be_strict_ends_where_the_damage_is(
    call, make_drive, write_pipeline
):
    drive = damage(make_drive(60, points=40, chunk_bytes=2000))
    tolerant = call("replay", drive, "-p", write_pipeline(), "--json").data
    done = call("replay", drive, "-p", write_pipeline(), "--json", "--strict")
    assert done.code == 3
    met = done.data["jobs"]["met"]
    assert 0 < met < tolerant["jobs"]["met"]
    assert done.data["log"]["topics"]["/lidar"]["lost"] == 0
    assert f"({met} good messages were delivered)" in done.data["damage"][0]
    assert "strict" in done.data["conditions"]
    with drive.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 100)
    done = call("replay", drive, "-p", write_pipeline(), "--strict")
    assert done.code == 3
    assert f"{drive.name}, byte " in only_line(done.err)


def test_two_runs_in_one_log_are_played_one_after_another(call, write_pipeline, tmp_path):
    path, record = tmp_path / "two.mcap", tmp_path / "run.mcap"
    with LogWriter(path) as log:
        for _ in range(2):
            log.add_metadata("session", {})
            for k in range(5):
                log.add_cloud("/lidar", "roof", 1000 + k * 100_000_000, np.ones((4, 3), np.float32))
            log._counts.clear()
    done = call("replay", path, "-p", write_pipeline(), "-o", record, "--json")
    assert done.code == 0
    assert done.data["jobs"]["met"] == 10
    assert [a["count"] for a in done.data["log"]["anomalies"] if a["kind"] == "runs"] == [2]
    assert call("verify", record).code == 0


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_a_log_that_was_cut_exits_3(call, make_drive, write_pipeline, share):
    drive = make_drive(60, points=40, chunk_bytes=2000)
    data = drive.read_bytes()
    drive.write_bytes(data[: int(len(data) * share)])
    assert call("replay", drive, "-p", write_pipeline(), "--json").code == 3


@pytest.mark.parametrize("content", [None, b"", b"text", b"\x89MCAP0\r\n"], ids=range(4))
@pytest.mark.parametrize("command", ["replay", "verify", "report"])
def test_what_is_no_log_or_record_exits_4(call, write_pipeline, tmp_path, content, command):
    path = tmp_path / "it.mcap"
    if content is not None:
        path.write_bytes(content)
    more = ("-p", write_pipeline()) if command == "replay" else ()
    done = call(command, path, *more)
    assert done.code in ({4, 2} if content == b"\x89MCAP0\r\n" and command == "replay" else {4})
    assert "it.mcap" in only_line(done.err) or "no topic" in done.err
    assert done.out == ""


@pytest.mark.parametrize("command", ["replay", "verify", "report"])
def test_a_folder_exits_4(call, write_pipeline, tmp_path, command):
    more = ("-p", write_pipeline()) if command == "replay" else ()
    assert call(command, tmp_path, *more).code == 4


@pytest.mark.parametrize("command", READERS)
def test_an_ordinary_log_is_no_run(call, make_drive, command):
    done = call(command, make_drive(2))
    assert done.code == 4
    assert "expected a run record of avrt" in only_line(done.err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--timing", "guess"), "expected a timing of model, measured or recorded:RUN"),
        (("--timing", "recorded:"), "expected a timing of"),
        (("--hang-timeout", "10"), "hang timeout: expected a duration"),
        (("--hang-timeout", "0 s"), "hang timeout: expected more than 0"),
        (("--hang-timeout", "-1 s"), "hang timeout: expected more than 0"),
        (("-o", "/no/such/folder/run.mcap"), "cannot create the run record"),
    ],
    ids=range(6),
)
def test_a_wrong_option_exits_2(call, make_drive, write_pipeline, arguments, message):
    done = call("replay", make_drive(2), "-p", write_pipeline(), *arguments)
    assert done.code == 2
    assert message in only_line(done.err)
    assert done.out == ""


def test_a_recording_that_is_missing_exits_4(call, make_drive, write_pipeline, tmp_path):
    timing = f"recorded:{tmp_path / 'no.mcap'}"
    done = call("replay", make_drive(2), "-p", write_pipeline(), "--timing", timing)
    assert done.code == 4


def test_a_record_never_overwrites_what_the_run_reads(call, make_drive, write_pipeline, tmp_path):
    drive, path = make_drive(2), write_pipeline()
    (tmp_path / "link.mcap").symlink_to(drive)
    for out in (drive, path, tmp_path / "link.mcap", tmp_path / "x" / ".." / "drive.mcap"):
        before = drive.read_bytes(), path.read_bytes()
        (tmp_path / "x").mkdir(exist_ok=True)
        done = call("replay", drive, "-p", path, "-o", out)
        assert done.code == 2
        assert "would overwrite" in only_line(done.err)
        assert (drive.read_bytes(), path.read_bytes()) == before


def test_a_rejected_call_leaves_an_old_record_as_it_was(call, record, write_pipeline, tmp_path):
    before = record.read_bytes()
    drive = tmp_path / "drive.mcap"
    bad = write_pipeline(topic="/lidr", name="bad.yaml")
    assert call("replay", drive, "-p", bad, "-o", record).code == 2
    assert call("replay", drive, "-p", write_pipeline(), "-o", record, "--timing", "x").code == 2
    assert record.read_bytes() == before


def test_a_full_disk_exits_2(call, make_drive, write_pipeline):
    done = call("replay", make_drive(20), "-p", write_pipeline(), "-o", "/dev/full")
    assert done.code == 2
    assert "cannot write the run record /dev/full: No space left on device" in only_line(done.err)


def test_a_topic_that_is_missing_exits_2_with_the_nearest(call, make_drive, write_pipeline):
    done = call("replay", make_drive(2), "-p", write_pipeline(topic="/lidr"))
    assert done.code == 2
    expected = "small.yaml:4: sources.lidar.topic: the log has no topic '/lidr'; did you mean"
    assert expected in only_line(done.err)


def test_a_recorded_run_gives_the_same_digests(call, record, make_drive, write_pipeline):
    timing = f"recorded:{record}"
    first = call("report", record, "--json").data
    again = call("replay", make_drive(6), "-p", write_pipeline(), "--timing", timing, "--json").data
    assert again["timing"] == "recorded"
    assert again["digests"] == first["digests"]
    assert again["conditions"]["timing_run"] == f"{record}, 6 jobs"


def test_what_is_known_to_miss_runs_at_the_wall_clock_by_force_only(
    call, make_drive, write_pipeline, tmp_path
):
    log, path, run = make_drive(3), write_pipeline(wcet="60 ms"), tmp_path / "run.mcap"
    wall = ("--clock", "wall", "--rate", 20, "-o", run)
    refused = call("replay", log, "-p", path, *wall)
    assert refused.code == 2
    assert f"{path}:6" in refused.err
    assert "it can take 60 ms of 50 ms, 10 ms too long" in refused.err
    assert (
        "enough would be: wcet of it to at most 50 ms (-16.7%); --force runs it anyway"
        in refused.err
    )
    assert not run.exists()
    forced = call("replay", log, "-p", path, *wall, "--force")
    assert forced.code == 0
    assert "forced: it is known to miss: it can take 60 ms" in forced.out
    assert "it can take 60 ms" in call("report", run, "--json").data["conditions"]["forced"]


def test_nothing_is_refused_or_forced_in_virtual_time(call, make_drive, write_pipeline):
    log, path = make_drive(3), write_pipeline(wcet="60 ms")
    assert call("replay", log, "-p", path).code == 0
    forced = call("replay", log, "-p", path, "--force")
    assert forced.code == 2
    assert "virtual time refuses nothing" in forced.err


def test_only_what_is_around_misses_is_kept_where_that_is_asked_for(
    call, make_drive, write_pipeline, tmp_path
):
    path = write_pipeline(wcet="60 ms")
    flight = tmp_path / "kept"
    done = call(
        "replay", make_drive(30), "-p", path, "--keep-around-misses", "150ms", "--flight", flight
    )
    assert done.code == 0
    files = sorted(flight.iterdir())
    assert files
    assert files[0].name in done.out
    shown = call("report", files[0], "--json").data
    assert shown["incident_ns"] is not None


def test_a_drive_around_whose_misses_nothing_can_be_written_exits_1(
    call, make_drive, write_pipeline
):
    log, path = make_drive(5), write_pipeline(wcet="60 ms")
    done = call("replay", log, "-p", path, "--keep-around-misses", "1s", "--flight", log)
    assert done.code == 1
    assert "the flight recorder gave up: " in done.out
    assert "avrt: exit 1: a flight record could not be written" in done.err


def test_a_drive_without_misses_leaves_nothing(call, make_drive, write_pipeline, tmp_path):
    flight = tmp_path / "kept"
    arguments = ("--keep-around-misses", "1s", "--flight", flight)
    assert call("replay", make_drive(5), "-p", write_pipeline(), *arguments).code == 0
    assert not flight.exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--keep-around-misses", "soon"), "keep_around_misses: expected a duration"),
        (("--keep-around-misses", "1s", "-o", "run.mcap"), "the first one keeps everything"),
    ],
)
def test_what_is_kept_is_said_once_and_as_a_time(call, make_drive, write_pipeline, arguments, what):
    done = call("replay", make_drive(2), "-p", write_pipeline(), *arguments)
    assert done.code == 2
    assert what in only_line(done.err)
