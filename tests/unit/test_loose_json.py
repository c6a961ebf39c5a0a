"""JSON as models write it by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.dialects.loose_json import read_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1} and more', {"a": 1}),
        ("{'a': 'x', 'b': [1, 2,],}", {"a": "x", "b": [1, 2]}),
        ('｛“a”：“b"c”，“d”：［１］｝'.replace("１", "1"), {"a": 'b"c', "d": [1]}),
        ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
        ("{'say': 'it\\'s \"so\"\\n'}", {"say": 'it\'s "so"\n'}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ("{}", {}),
        ("[1, [2]]", [1, [2]]),
    ],
)
def test_it_is_read_as_it_is_meant(text: str, value: object):
    assert read_value(text)[0] == value


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "5", '"x"', '{"a": 1', "{'a': 'b", "{'a': 'it's'}", "{'a': 1 2}", "{'a': truefalse}", "[,]", "{,}", "[1,,]",
        "{'a': (1, 2)}", "{a: 1}", "{'a': NaN}", "{'a': 1, 'a': 2}", "{'a': [1}", "{'a': '\\", "[" * 100_000,
    ],
)  # fmt: skip
def test_what_could_mean_anything_else_is_refused(text: str):
    with pytest.raises((ValueError, RecursionError)):
        read_value(text)


@given(OBJECTS, st.text())
def test_json_is_read_as_json(value: dict[str, object], rest: str):
    text = json.dumps(value)
    assert read_value(text + rest) == (json.loads(text), len(text))


@given(OBJECTS)
def test_python_is_read_as_json(value: dict[str, object]):
    if "\\x" not in repr(value) and "\\U" not in repr(value):  # JSON has no such escapes
        assert json.dumps(read_value(repr(value))[0]) == json.dumps(value)


@given(OBJECTS, st.data())
def test_a_part_is_never_read_as_a_whole(value: dict[str, object], data: st.DataObject):
    for text in (json.dumps(value), json.dumps(value, indent=1), repr(value)):
        cut = data.draw(st.integers(0, len(text) - 1))
        with pytest.raises(ValueError):
            read_value(text[:cut])


@given(st.text(alphabet="{}[]\"'“”：，, \\abnru01TrueNone\n"))
def test_no_text_breaks_it(text: str):
    try:
        value, end = read_value(text)
    except (ValueError, RecursionError):
        return
    assert isinstance(value, dict | list)
    assert 0 < end <= len(text)
