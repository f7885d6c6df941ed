"""Whatever happens to one file of a folder that is a log is told as damage, and nothing else."""

from __future__ import annotations

import contextlib

import pytest
import small_sets
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.errors import InputError
from avrt.logs import open_log
from avrt.logs.decode import READERS, decode
from avrt.logs.transforms import read_transforms
from avrt.logs.truth import read_truth

WRITERS = {
    "raw": small_sets.write_kitti_raw,
    "tracking": small_sets.write_kitti_tracking,
    "frames": small_sets.write_kitti_frames,
    "nuscenes": small_sets.write_nuscenes,
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Return the path of each log, and its files."""
    made = {}
    for name, write in WRITERS.items():
        root = tmp_path_factory.mktemp(name)
        path = write(root)
        found = sorted(file for file in root.rglob("*") if file.is_file())
        words = [file for file in found if file.suffix in {".txt", ".json"}]
        made[name] = path, words + found
    return made


def read_all(path):
    """Read everything that a replay reads, and let go what is told as damage."""
    with contextlib.suppress(InputError), open_log(path) as log:
        topics = log.topics()
        log.log_times()
        with contextlib.suppress(InputError):
            for raw in log.messages():
                for kind, types in READERS.items():
                    if raw.type in types:
                        with contextlib.suppress(InputError):
                            decode(raw, kind)
        if "/tf_static" in topics:
            read_transforms(log, ["/tf_static"])
        with contextlib.suppress(InputError):
            list(read_truth(log))


def spoil(data, draw):
    """Return what is left of a file: cut, with a word in it, with changed bytes, or nothing."""
    how = draw(st.sampled_from(["cut", "word", "bytes", "nothing"]))
    place = draw(st.integers(0, max(0, len(data) - 1)))
    if how == "cut":
        return data[:place]
    if how == "word":
        word = draw(
            st.sampled_from([b"nan", b"1e999", b"-1", b"{}", b"null", b"x y", b"\n", b"\xff"])
        )
        return data[:place] + word + data[place + len(word) :]
    if how == "bytes":
        put = draw(st.binary(min_size=1, max_size=8))
        return data[:place] + put + data[place + len(put) :]
    return b""


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
@given(data=st.data())
@settings(max_examples=60)
def test_a_spoilt_file_gives_no_foreign_exception(sets, name, data):
    path, files = sets[name]
    file = data.draw(st.sampled_from(files))
    whole = file.read_bytes()
    try:
        file.write_bytes(spoil(whole, data.draw))
        read_all(path)
    finally:
        file.write_bytes(whole)
