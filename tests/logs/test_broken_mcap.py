import importlib.util
import sys
from pathlib import Path

import pytest

from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log
from avrt.logs.decode import decode

TOOL = Path(__file__).parents[2] / "tools" / "broken_logs.py"
MEGABYTES_MAX = 200
GOOD = {
    "bad_chunk_compressed_byte": (109, DamagedInputError),
    "bad_chunk_crc_field": (109, DamagedInputError),
    "bad_chunk_payload_bit_uncompressed": (109, DamagedInputError),
    "cdr_big_endian_imu": (60, None),
    "duplicate_messages": (240, None),
    "empty_cdr_payload": (1, None),
    "gap_10s_then_back_2s": (120, None),
    "huge_record_length": (127, DamagedInputError),
    "image_payload_cut": (1, None),
    "log_time_zero_and_max": (6, None),
    "magic_only": (0, InputError),
    "magic_twice": (0, InputError),
    "missing_end_magic": (127, DamagedInputError),
    "no_index_no_summary": (127, None),
    "not_mcap": (0, InputError),
    "ok_lz4": (127, None),
    "ok_unchunked": (127, None),
    "ok_uncompressed": (127, None),
    "ok_zstd": (127, None),
    "out_of_order_shuffled": (120, None),
    "pointcloud_payload_cut": (1, None),
    "schemaless_json_and_ros1": (9, None),
    "trailing_garbage": (127, DamagedInputError),
    "truncated_60pct": (10, DamagedInputError),
    "truncated_in_record_length": (0, InputError),
    "unknown_opcodes_inserted": (127, DamagedInputError),
    "zero_length": (0, InputError),
}


@pytest.mark.parametrize(("name", "expected"), GOOD.items())
def test_every_good_message_is_delivered_and_damage_told(shared, name, expected):
    count, latest_ns, caught = 0, -1, None
    try:
        with open_log(shared / "broken_mcap" / f"{name}.mcap") as log:
            for message in log.messages():
                assert message.log_ns >= latest_ns
                latest_ns = message.log_ns
                count += 1
    except InputError as error:
        caught = error
    assert (count, None if caught is None else type(caught)) == expected
    if caught is not None:
        assert name in str(caught)
        assert caught.good_messages == count


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("image_payload_cut", "camera"),
        ("pointcloud_payload_cut", "lidar"),
        ("empty_cdr_payload", "camera"),
    ],
)
def test_a_payload_that_is_cut_names_topic_expected_and_found(shared, name, kind):
    with open_log(shared / "broken_mcap" / f"{name}.mcap") as log:
        (message,) = log.messages()
        with pytest.raises(
            InputError, match=r"^/.* at \d+ ns: expected a sensor_msgs.*, found \d+"
        ):
            decode(message, kind)


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("broken_logs", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["broken_logs"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", GOOD)
def test_exactly_the_messages_that_no_damage_has_reached_are_delivered(shared, tool, name):
    """Each is known by topic, log time and the hash of its payload: none is lost, none altered."""
    path = shared / "broken_mcap" / f"{name}.mcap"
    delivered, _ = tool.read(path)
    assert delivered == tool.recoverable(path)


@pytest.mark.parametrize("name", GOOD)
def test_a_strict_reader_gives_the_beginning_and_the_same_verdict(shared, name):
    found, codes = [], []
    for strict in (False, True):
        times = []
        try:
            with open_log(shared / "broken_mcap" / f"{name}.mcap", strict=strict) as log:
                times.extend(message.log_ns for message in log.messages())
        except InputError as error:
            codes.append(error.exit_code)
        found.append(times)
    assert found[1] == found[0][: len(found[1])]
    assert codes in ([], [3, 3], [4, 4], [4, 3])  # damage is damage, also before the first message


@pytest.mark.slow
def test_each_file_has_its_row_and_none_takes_much_memory(shared, tool):
    rows = tool.table(shared / "broken_mcap")
    assert {row.name: (row.delivered, row.exit) for row in rows} == {
        name: (count, 0 if error is None else error.exit_code)
        for name, (count, error) in GOOD.items()
    }
    assert [row.name for row in rows if row.altered or row.delivered != row.recoverable] == []
    assert max(row.megabytes for row in rows) < MEGABYTES_MAX
