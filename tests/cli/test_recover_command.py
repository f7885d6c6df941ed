"""`avrt recover`: what it prints and the code it exits with."""


def cut(path, share=0.6):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


def test_a_cut_record_is_recovered_and_can_be_verified(call, record, tmp_path):
    out = tmp_path / "whole.mcap"
    done = call("recover", cut(record), "-o", out)
    assert done.code == 3
    assert "damaged: " in done.out
    assert "messages, the last at " in done.out
    done = call("verify", out)
    assert done.code == 3, done.out + done.err
    assert "equal in " in done.out
    shown = call("report", out)
    assert "the record was cut short" in shown.out


def test_a_whole_record_exits_0_and_json_is_one_object(call, record, tmp_path):
    done = call("recover", record, "-o", tmp_path / "copy.mcap", "--json")
    assert done.code == 0
    assert (done.data["lost"], done.data["damage"]) == (0, [])
    assert done.data["messages"] > 0


def test_what_is_no_mcap_or_would_be_overwritten_is_refused(call, record, tmp_path):
    assert call("recover", record, "-o", record).code == 2
    empty = tmp_path / "empty"
    empty.touch()
    assert call("recover", empty, "-o", tmp_path / "out.mcap").code == 4
