"""The calculator: right, fast, and nothing but arithmetic."""

import ast
import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ToolError
from agent.registry import ActionRegistry
from agent.toolbox import calculator
from agent.toolbox.arithmetic import calculate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2*(3+4)", 14),
        ("(200 + 10) * 2", 420),
        ("10 - 3 - 2", 5),
        ("2 * 3 + 4 * 5", 26),
        ("7 / 2", 3.5),
        ("7 // 2", 3),
        ("-7 % 3", 2),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("2 ** -3", 0.125),
        ("1 ** 10000", 1),
        ("3 × 4 ÷ 2 − 1", 5.0),
        ("（1＋2）*3", 9),
        ("round(2.567, 2)", 2.57),
        ("round(2.5)", 2),
        ("round(12345, -2)", 12300),
        ("abs(-3) + min(1, 2) + max(1, 2, 3)", 7),
        ("sqrt(16)", 4.0),
        ("1_000 + 0x10", 1016),
        ("0o17 + 0b11 + 0xfF", 273),
        ("1e2 + 1.5E+1 + .5 + 2.", 117.5),
        ("max(1000, 500)", 1000),
        ("max(1,50)", 50),
        ("max(1 ,500)", 500),
        ("+".join(["1"] * 500), 500),
        ("(" * 50 + "1" + ")" * 50, 1),
        (" 1 ", 1),
    ],
)
def test_it_computes(expression: str, value: float):
    result = calculate(expression)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    "expression",
    [
        "().__class__.__bases__[0].__subclasses__()",
        "__import__('os').system('id')",
        "9**9**9**9",
        "10**1000000000",
        "(1,)*10**9",
        "1/0",
        "'a'*10**10",
        "factorial(10**7)",
    ],
)
def test_what_is_no_arithmetic_or_too_much_is_an_error_at_once(expression: str):
    """case-130"""
    started = time.perf_counter()
    with pytest.raises(ToolError):
        calculate(expression)
    assert time.perf_counter() - started < 0.05


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("1/0", "Division by zero."),
        ("0 ** -1", "Division by zero."),
        ("2^3", "Write ** for powers"),
        ("1,000 + 1", "without separators"),
        ("max(12,345, 10)", "without separators"),
        ("max(1,500, 900)", "without separators"),
        ("round(3,500)", "without separators"),
        ("sqrt(1,024)", "without separators"),
        ("max(1，500, 900)", "without separators"),
        ("max(1,234.5, 2)", "without separators"),
        ("min(1,234,567, 2)", "without separators"),
        ("10**1000", "more than 1,000 digits"),
        ("10**999 * 10", "more than 1,000 digits"),
        ("3**9999", "more than 1,000 digits"),
        ("2**10001", "exponent"),
        ("1e999", "too large"),
        ("1e308 * 10", "too large"),
        ("(10**900) ** -1", "too large"),
        ("(-8) ** (1/3)", "no real number"),
        ("sqrt(-1)", "sqrt cannot be computed"),
        ("sqrt(1, 2)", "sqrt cannot be computed"),
        ("min()", "min cannot be computed"),
        ("round(1, -10**9)", "round takes"),
        ("round(1, 0.5)", "round takes"),
        ("1 + 1" + " " * 1000, "longer than 1,000 characters"),
        ("-" * 900 + "1", "nested deeper than 50 levels"),
        ("(" * 400 + "1" + ")" * 400, "too many nested parentheses"),
        ("abs(" * 60 + "1" + ")" * 60, "nested deeper than 50 levels"),
        ("", "no arithmetic expression"),
        ("2 +", "no arithmetic expression"),
        ("\x00", "no arithmetic expression"),
        ("two plus two", "no arithmetic expression"),
        ("x", "are known"),
        ("True", "are known"),
        ("1j", "are known"),
        ("1 << 2", "are known"),
        ("~1", "are known"),
        ("1 < 2", "are known"),
        ("1 if 1 else 2", "are known"),
        ("[1][0]", "are known"),
        ("(lambda: 1)()", "are known"),
        ("round(number=1)", "are known"),
        ("max(*[1, 2])", "are known"),
        ("abs.__call__(1)", "are known"),
        ("f'{1}'", "are known"),
        ("(x := 1)", "are known"),
    ],
)
def test_errors_are_words(expression: str, words: str):
    with pytest.raises(ToolError, match=words.replace("*", r"\*")):
        calculate(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "1if 2 else 3",
        "0x1for x in y",
        "0xfor 1",
        "1.if 1 else 2",
        "1.5.3if 2 else 3",
        "0b1and 1",
        "1_0or 2",
        "1e5in 2",
        r"'\d'",
    ],
)
def test_what_would_be_warned_of_is_not_parsed(expression: str):
    with pytest.raises(ToolError, match="are known"):
        calculate(expression)


PIECES = [
    "0", "1", "0x", "0b", "0o", "f", "e", "E", "j", ".", "_", "+", "(", ")", ",", " ", "if", "or", "and", "is", "in", "not",
    "else", "for", "x", '"', "'", "\\", "#",
]  # fmt: skip


@pytest.mark.filterwarnings("error")
@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_nothing_is_ever_warned_of(parts: list[str]):
    with contextlib.suppress(ToolError):
        assert isinstance(calculate("".join(parts)), int | float)


@given(st.text(alphabet="0123456789.+-*/%() ,e_abcxrounsqtmi[]'\"^<>~\n", max_size=60))
def test_any_text_is_a_number_or_an_error(text: str):
    started = time.perf_counter()
    try:
        value = calculate(text)
    except ToolError as error:
        assert str(error)
    else:
        assert isinstance(value, int | float)
    assert time.perf_counter() - started < 1


NUMBERS = st.integers(0, 999).map(str) | st.floats(0, 1e6).map(lambda number: f"{number:.3f}")
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map("({0[0]} {0[1]} {0[2]})".format)
        | inner.map("-{}".format)
        | inner.map("abs({})".format)
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_it_computes_as_python_does(expression: str):
    assert calculate(expression) == python_value(ast.parse(expression, mode="eval").body)


def python_value(node: ast.expr) -> float:
    """The value, by another way."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(operand=operand):
            return -python_value(operand)
        case ast.Call(args=[argument]):
            return abs(python_value(argument))
        case ast.BinOp(left=left, op=sign, right=right):
            one, other = python_value(left), python_value(right)
            return (
                one + other if isinstance(sign, ast.Add) else one - other if isinstance(sign, ast.Sub) else one * other
            )
        case _:
            raise AssertionError(ast.dump(node))


def test_it_is_a_tool_and_a_function():
    tool = ActionRegistry([calculator]).tools["calculator"]
    assert (tool.idempotent, tool.parameters["required"]) == (True, ["expression"])
    assert calculator("2*(3+4)") == 14
