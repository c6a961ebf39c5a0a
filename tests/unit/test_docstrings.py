"""Docstrings in three styles, and in none."""

import pytest

from agent.docstrings import parse_docstring

GOOGLE_WITHOUT_BLANK_LINES = """Get the weather.
    Args:

        city (str): The city: name or id.
            Second line.
        units - temperature units
    Returns:
        str: text
    """

GOOGLE = """Get the weather.

    Asks a station.

    Args:
        city: The city.
        *days: Which days.
        **options (dict[str, int], optional): More.

    Raises:
        ValueError: No such city.

    Example:
        weather("Rome")
    """

NUMPY = """Get the weather.

    Parameters
    ----------
    city : str
        The city: name or id.
        Second line.

    lat, lon : float, optional
        The place.
    units
        Of temperature.

    Returns
    -------
    str
        The text.

    Notes
    -----
    It may rain.
    """

SPHINX = """Get the weather.

    :param city: The city: name or id.
        Second line.
    :type city: str
    :param int days: How many days.
    :returns: The text,
        in words.
    :raises ValueError: No such city.
    """


def test_google_style_without_blank_lines_keeps_the_colon_and_the_second_line() -> None:
    """case-049"""
    read = parse_docstring(GOOGLE_WITHOUT_BLANK_LINES)

    assert read.description == "Get the weather."
    assert read.parameters == {"city": "The city: name or id.\nSecond line."}


def test_google_style_keeps_what_is_not_about_parameters_and_results() -> None:
    read = parse_docstring(GOOGLE)

    assert read.description == 'Get the weather.\n\nAsks a station.\n\nExample:\n    weather("Rome")'
    assert read.parameters == {"city": "The city.", "days": "Which days.", "options": "More."}


def test_numpy_style() -> None:
    read = parse_docstring(NUMPY)

    assert read.description == "Get the weather.\n\nNotes\n-----\nIt may rain."
    assert read.parameters == {
        "city": "The city: name or id.\nSecond line.",
        "lat": "The place.",
        "lon": "The place.",
        "units": "Of temperature.",
    }


def test_sphinx_style() -> None:
    read = parse_docstring(SPHINX)

    assert read.description == "Get the weather."
    assert read.parameters == {"city": "The city: name or id.\nSecond line.", "days": "How many days."}


@pytest.mark.parametrize("text", [None, "", "   ", "\n\n"])
def test_no_docstring_says_nothing(text: str | None) -> None:
    read = parse_docstring(text)

    assert read.description == ""
    assert read.parameters == {}


def test_a_docstring_without_a_summary_has_no_description() -> None:
    read = parse_docstring("Args:\n        city: The city.\n            In words.\n    ")

    assert read.description == ""
    assert read.parameters == {"city": "The city.\nIn words."}


@pytest.mark.parametrize(
    "text",
    [
        "Args:",
        "Args:\n\n",
        "Parameters\n---",
        ":param",
        ":param:",
        ":param : no name",
        "Args:\n    : no name\n    (str): no name\n    city",
        "Args:\n\ncity: not indented",
        "---\n---\n---",
        "Note: this is a sentence.",
    ],
)
def test_malformed_lines_describe_nothing_and_raise_nothing(text: str) -> None:
    assert parse_docstring(text).parameters == {}


@pytest.mark.parametrize(
    "text",
    [
        "Get.\n\nArgs:\n    - city: The city.\n    - days (int): How many: 1 to 7.\n\nReturns:\n    Text.",
        "Get.\n\nArgs:\n    * `city`: The city.\n    * `days` (int): How many: 1 to 7.",
        "Get.\n\nArgs:\n    **city**: The city.\n    **days** (int): How many: 1 to 7.",
        "Get.\n\n**Args:**\n- **city:** The city.\n- **days (int)**: How many: 1 to 7.",
        "Get.\n\n**Parameters**:\n    ``city``: The city.\n    ``days``: How many: 1 to 7.",
        "Get.\n\n参数：\n    city：The city.\n    days（整数）：How many: 1 to 7.\n\n返回：\n    Text.",
        "Get.\n\n参数:\n    city: The city.\n    days (int): How many: 1 to 7.\n返回值:\n    Text.",
        "Get.\n\nParameters\n----------\n`city` : str\n    The city.\n**days**\n    How many: 1 to 7.",
        "Get.\n\n:param `city`: The city.\n:param int `days`: How many: 1 to 7.",
    ],
)
def test_names_are_known_however_they_are_marked_and_listed(text: str) -> None:
    read = parse_docstring(text)

    assert read.description == "Get."
    assert read.parameters == {"city": "The city.", "days": "How many: 1 to 7."}


def test_marks_inside_of_a_text_stay() -> None:
    read = parse_docstring("Args:\n    city: *Not* the `county`.\n    zone：**重要** 的")

    assert read.parameters == {"city": "*Not* the `county`.", "zone": "**重要** 的"}
