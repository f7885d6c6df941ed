import os

import numpy as np
import pytest
import small_sets
from PIL import Image as PillowImage

from avrt.errors import InputError
from avrt.logs.files import picture_size, read_bytes, read_lines, read_picture, read_rows

READERS = [read_bytes, read_lines, read_picture, picture_size, lambda path: read_rows(path, 4)]


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_with_something_in_it_is_told_and_not_waited_for(tmp_path, read):
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    told = {
        "missing": "cannot be read: No such file",
        "empty": "found an empty file",
        "folder": "expected a file, found something else",
        "pipe": "expected a file, found something else",
    }
    for name, what in told.items():
        with pytest.raises(InputError, match=rf"{name}: .*{what}"):
            read(tmp_path / name)


def test_rows_are_whole_or_told(tmp_path):
    path = tmp_path / "a.bin"
    np.arange(8, dtype="<f4").tofile(path)
    assert read_rows(path, 4).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(InputError, match="rows of 5 float32, 20 bytes each, found 32 bytes"):
        read_rows(path, 5)


@pytest.mark.parametrize("encoding", ["PNG", "JPEG"])
def test_a_picture_is_whole_or_told(tmp_path, encoding):
    path = tmp_path / "picture"
    small_sets.picture(path, (40, 30), encoding)
    image = read_picture(path)
    assert (image.encoding, image.pixels().shape) == (encoding.lower(), (30, 40, 3))
    assert picture_size(path) == (40, 30)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=f"expected a whole {encoding.lower()}, found one"):
        read_picture(path)


def test_what_is_no_picture_is_told(tmp_path, monkeypatch):
    path = tmp_path / "words"
    path.write_bytes(b"not a picture")
    with pytest.raises(InputError, match="expected a PNG or a JPEG, found b'not a pi'"):
        read_picture(path)
    with pytest.raises(InputError, match="expected a picture"):
        picture_size(path)
    small_sets.picture(path, (40, 30))
    monkeypatch.setattr(PillowImage, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(InputError, match="expected a picture: Image size"):
        picture_size(path)


def test_what_is_no_text_is_told(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\n \ntwo \xff")
    with pytest.raises(InputError, match="expected a text"):
        read_lines(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes(b"one\n\n \ntwo")
    assert read_lines(tmp_path / "a.txt") == ["one", "two"]
