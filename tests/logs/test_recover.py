"""What `recover` copies of a damaged file, and that it is whole, readable and says what is lost."""

from errno import ENOSPC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader

from avrt.errors import InputError, SpecError
from avrt.logs import open_log
from avrt.logs.mcap.recover import recover
from avrt.logs.record.run_file import RunFile
from avrt.logs.record.run_record import RECOVERED, RunRecord
from avrt.logs.writer import LogWriter


def contents(path):
    with open_log(path) as log:
        found = [(m.topic, m.log_ns, m.sequence, bytes(m.data)) for m in log.messages()]
        return found, list(log.anomalies)


@pytest.fixture
def record(tmp_path):
    """Write a run record of 200 journal entries, in several chunks."""
    with RunRecord(
        tmp_path / "run.mcap", zero_ns=1_000, conditions={"log": "a"}, pipeline_json="{}"
    ) as run:
        for index in range(200):
            run.journal(f'{{"entry": {index}}}', index * 10_000_000)
    return tmp_path / "run.mcap"


def test_a_whole_file_is_copied_and_nothing_is_told(write_log, tmp_path):
    path, out = write_log(tmp_path / "a.mcap", 20), tmp_path / "out.mcap"
    told = recover(path, out)
    assert (told.lost, told.damage) == (0, [])
    assert contents(out) == contents(path)
    with out.open("rb") as file:
        assert RECOVERED not in [m.name for m in make_reader(file).iter_metadata()]


@given(share=st.floats(0, 1))
def test_wherever_a_record_is_cut_its_beginning_is_recovered(share, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    path, out = folder / "run.mcap", folder / "out.mcap"
    with RunRecord(path, zero_ns=0, conditions={"log": "a"}, pipeline_json="{}") as run:
        for index in range(150):
            run.journal(f'{{"entry": {index}}}', index * 10_000_000)
    whole, _ = contents(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    try:
        told = recover(path, out)
    except InputError:
        assert share * len(data) < 1_000
        assert not out.exists()
        return
    found, anomalies = contents(out)
    assert found == whole[: len(found)]
    assert anomalies == []
    assert told.messages == len(found)
    assert bool(told.damage) == (len(path.read_bytes()) < len(data))
    with RunFile(out) as run:
        assert run.conditions == {"log": "a"}
        assert run.damage == []


def test_a_whole_file_without_a_message_is_copied_like_any_other(tmp_path):
    path, out = tmp_path / "empty.mcap", tmp_path / "out.mcap"
    with LogWriter(path):
        pass
    told = recover(path, out)
    assert (told.messages, told.lost, told.damage) == (0, 0, [])
    assert contents(out) == ([], [])


def test_a_chunk_with_a_wrong_check_sum_is_left_out_and_what_follows_is_kept(record, tmp_path):
    whole, _ = contents(record)
    data = bytearray(record.read_bytes())
    data[data.index(b'{"entry": 70}')] ^= 1
    record.write_bytes(data)
    told = recover(record, tmp_path / "out.mcap")
    found, _ = contents(tmp_path / "out.mcap")
    assert [item for item in whole if item in found] == found
    assert len(found) + told.lost == len(whole)
    assert 0 < told.lost < 150
    assert found[-1] == whole[-1]
    assert "CRC" in str(told.damage)
    with (tmp_path / "out.mcap").open("rb") as file:
        (said,) = [m for m in make_reader(file).iter_metadata() if m.name == RECOVERED]
    assert said.metadata["lost"] == str(told.lost)
    assert said.metadata["from"] == "run.mcap"


def test_nothing_is_overwritten_and_nothing_half_is_left(record, tmp_path):
    taken = tmp_path / "mine"
    taken.write_text("mine")
    with pytest.raises(SpecError, match="is there already"):
        recover(record, taken)
    assert taken.read_text() == "mine"
    with pytest.raises(SpecError, match="is there already"):
        recover(record, record)


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0", b"\x89MCAP0\r\n"])
def test_what_has_nothing_to_recover_is_refused(tmp_path, data):
    path = tmp_path / "a.mcap"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.mcap"):
        recover(path, tmp_path / "out.mcap")
    assert not (tmp_path / "out.mcap").exists()


def test_a_copy_that_cannot_be_written_is_told_by_its_name_and_goes(record, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(ENOSPC, "No space left on device")

    out = tmp_path / "out.mcap"
    with pytest.raises(SpecError, match=r"cannot create .*none/out\.mcap: No such file"):
        recover(record, tmp_path / "none" / "out.mcap")
    monkeypatch.setattr("avrt.logs.mcap.recover.Writer.add_message", full)
    with pytest.raises(SpecError, match=r"cannot write .*out\.mcap: No space left"):
        recover(record, out)
    assert not out.exists()


def test_a_file_whose_name_is_no_utf_8_is_recovered(record, tmp_path):
    path = record.rename(tmp_path / "run\udcff.mcap")
    path.write_bytes(path.read_bytes()[:-30])
    recover(path, tmp_path / "out.mcap")
    with (tmp_path / "out.mcap").open("rb") as file:
        (said,) = [m for m in make_reader(file).iter_metadata() if m.name == RECOVERED]
    assert said.metadata["from"] == r"run\udcff.mcap"
    assert r"run\udcff.mcap, byte" in said.metadata["damage"]
