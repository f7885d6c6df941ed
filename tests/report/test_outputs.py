"""An output is refused where it is a file that is read, under whatever name."""

import os

import pytest

from avrt.errors import SpecError
from avrt.report.outputs import keep_apart


def test_another_name_of_a_file_is_that_file(tmp_path):
    read, linked, aside = tmp_path / "read", tmp_path / "linked", tmp_path / "aside"
    read.write_text("")
    os.link(read, linked)
    aside.symlink_to(read)
    for out in (read, linked, aside, tmp_path / "x" / ".." / "read"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(SpecError, match=r"the page would overwrite .*read; give another path"):
            keep_apart("the page", out, [None, read])


def test_two_outputs_that_are_not_there_yet_may_be_one(tmp_path):
    keep_apart("the page", tmp_path / "a", [tmp_path / "b", None])
    with pytest.raises(SpecError):
        keep_apart("the page", tmp_path / "a", [tmp_path / "." / "a"])
