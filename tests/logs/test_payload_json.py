import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from avrt.logs.record.payload_json import DEPTH_MAX, from_json, to_json
from avrt.payload import Box

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner).map(tuple) | st.dictionaries(st.text("abc"), inner),
    max_leaves=20,
)
ARRAYS = hnp.arrays(
    st.sampled_from(["float32", "float64", "int64", "uint8", "bool"]),
    hnp.array_shapes(min_dims=0, min_side=0),
)


def same(a, b):
    if isinstance(a, float):
        return type(b) is float and (a == b or (math.isnan(a) and math.isnan(b)))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@given(PLAIN)
@settings(max_examples=40)
def test_plain_data_reads_back_exactly_and_is_strict_json(value):
    text = to_json(value)
    json.loads(text, parse_constant=pytest.fail)
    assert same(value, from_json(text))


@given(ARRAYS)
@settings(max_examples=40)
def test_arrays_read_back_exactly(array):
    read = from_json(to_json({"a": array}))["a"]
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert np.array_equal(read, array, equal_nan=array.dtype.kind == "f")


def test_numpy_scalars_are_numbers():
    box = Box(*np.arange(7, dtype=np.float32))
    assert from_json(to_json(box)) == box


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array(["text"]), b"bytes", Box])
def test_what_is_not_plain_is_refused(value):
    with pytest.raises(TypeError, match="expected"):
        to_json({"a": [value]})


def test_endless_nesting_is_refused():
    value = []
    value.append(value)
    with pytest.raises(TypeError, match=f"at most {DEPTH_MAX} levels"):
        to_json(value)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"$type":"Box","x":1}',
        '{"$array":"float64","shape":[3],"data":[1]}',
        '{"$array":"object","shape":[1],"data":[1]}',
        '{"$array":"none","shape":[1]}',
        '{"$array":"int8","shape":3}',
        '{"$float":"many"}',
        '{"$float":[]}',
        '{"$type":[]}',
        "[" * 100_000,
    ],
)
def test_text_that_to_json_does_not_write_is_refused(text):
    with pytest.raises(ValueError, match=r"expected|invalid|reshape|convert|Expecting|\d"):
        from_json(text)


@given(st.text() | st.recursive(st.none() | st.text("$typearflo"), st.lists).map(json.dumps))
@settings(max_examples=40)
def test_no_text_gives_a_foreign_exception(text):
    try:
        from_json(text)
    except ValueError:
        return
