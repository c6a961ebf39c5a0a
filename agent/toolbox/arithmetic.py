"""A calculator that computes and does nothing else: an expression is read, never executed, and only what is listed here counts.

Every limit is looked at before the work is done, so that no expression takes longer than some milliseconds.
"""

import ast
import math
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from agent.errors import ToolError
from agent.tools import tool

Number: TypeAlias = int | float

LONGEST_EXPRESSION: Final = 1_000
"""Characters."""
DEEPEST_NESTING: Final = 50
MOST_DIGITS: Final = 1_000
"""Of any number on the way, before the decimal point."""
LARGEST_EXPONENT: Final = 10_000

_LARGEST: Final = 10**MOST_DIGITS
_LARGEST_BITS: Final = _LARGEST.bit_length()
_SIGNS: Final = str.maketrans(
    {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "（": "(", "）": ")", "＋": "+", "，": ","}
)

_SEPARATED: Final = re.compile(r"\d,\d{3}(?!\d)")
"""12,345: one number for whoever wrote it, and two for the parser."""
_NO_SEPARATORS: Final = (
    "Write numbers without separators, as in 1000; commas stand between the arguments of functions, with a space behind "
    "each."
)
_WORDS: Final = re.compile(
    r"""(?>
        (?: 0[xX][\da-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+
          | (?: \d[\d_]*(?:\.[\d_]*)? | \.\d[\d_]* ) (?:[eE][+-]?\d[\d_]*)? ) (?![\w.])  # a number
        | [^\W\d]\w*  # a name
        | [^\w'"\\]   # a sign
    )*+""",
    re.VERBOSE | re.DOTALL,
)
"""What the parser is given: it would warn on stderr of a number that runs into a word, and of what it finds in texts."""


@tool(idempotent=True)
def calculator(expression: str) -> int | float:
    """Computes an arithmetic expression.

    Args:
        expression: Numbers with + - * / // % ** and parentheses, and round, abs, min, max, sqrt; such as `2 * (3 + 4)`.
    """
    return calculate(expression)


def calculate(expression: str) -> Number:
    """The value of an arithmetic expression.

    Raises:
        ToolError: It is none, or is beyond a limit. The text says why.
    """
    if len(expression) > LONGEST_EXPRESSION:
        raise ToolError(f"The expression is longer than {LONGEST_EXPRESSION:,} characters.")
    plain = expression.translate(_SIGNS).strip()
    if _SEPARATED.search(plain):
        raise ToolError(_NO_SEPARATORS)
    if not _WORDS.fullmatch(plain):
        raise ToolError(_known())
    try:
        tree = ast.parse(plain, mode="eval")
    except SyntaxError as error:
        raise ToolError(f"This is no arithmetic expression: {error.msg}.") from error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, too many digits; nested beyond the parser
        raise ToolError(
            "The expression cannot be read: it is nested too deep, or has characters or numbers beyond reason."
        ) from error
    try:
        return _value(tree.body, DEEPEST_NESTING)
    except ZeroDivisionError as error:
        raise ToolError("Division by zero.") from error
    except OverflowError as error:
        raise ToolError("A number becomes too large.") from error


def _known() -> str:
    return f"Only numbers, + - * / // % ** and parentheses, and {', '.join(_FUNCTIONS)} are known."


def _value(node: ast.expr, depth: int) -> Number:
    """The value of one node.

    Args:
        depth: How much deeper the nesting may become.
    """
    if depth == 0:
        raise ToolError(f"The expression is nested deeper than {DEEPEST_NESTING} levels.")
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, depth - 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, depth - 1)
        case ast.BinOp():
            return _chain(node, depth)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _bounded(_applied(name, [_value(argument, depth - 1) for argument in arguments]))
        case ast.Tuple():
            raise ToolError(_NO_SEPARATORS)
        case _:
            raise ToolError(_known())


def _chain(node: ast.BinOp, depth: int) -> Number:
    """The value of a sum or product, which may have many terms: they lie one within the other to the left."""
    behind: list[tuple[ast.operator, ast.expr]] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        behind.append((first.op, first.right))
        first = first.left
    total = _value(first, depth - 1)
    for sign, term in reversed(behind):
        total = _bounded(_combined(sign, total, _value(term, depth - 1)))
    return total


def _combined(sign: ast.operator, left: Number, right: Number) -> Number:
    match sign:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.FloorDiv():
            return left // right
        case ast.Mod():
            return left % right
        case ast.Pow():
            return _power(left, right)
        case ast.BitXor():
            raise ToolError("Write ** for powers; ^ is not known.")
        case _:
            raise ToolError("Only the operators + - * / // % ** are known.")


def _applied(name: str, values: list[Number]) -> Number:
    try:
        return _FUNCTIONS[name](*values)
    except (TypeError, ValueError) as error:
        raise ToolError(f"{name} cannot be computed of these: {error}.") from error


def _bounded(number: Number) -> Number:
    """The number, if it is one that a person would write down."""
    if isinstance(number, float) and not math.isfinite(number):
        raise ToolError("A number becomes too large.")
    if abs(number) >= _LARGEST:
        raise ToolError(f"A number has more than {MOST_DIGITS:,} digits.")
    return number


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > LARGEST_EXPONENT:
        raise ToolError(f"An exponent is larger than {LARGEST_EXPONENT:,}.")
    if isinstance(base, int) and isinstance(exponent, int) and (base.bit_length() - 1) * exponent > _LARGEST_BITS:
        raise ToolError(f"A number has more than {MOST_DIGITS:,} digits.")
    power: int | float | complex = base**exponent
    if isinstance(power, complex):
        raise ToolError("The power of a negative number with a fraction as its exponent is no real number.")
    return power


def _rounded(number: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > MOST_DIGITS:
        raise ToolError(f"round takes a whole number of digits, at most {MOST_DIGITS:,}.")
    return round(number, digits) if digits else round(number)


def _magnitude(number: Number) -> Number:
    return abs(number)


def _least(*numbers: Number) -> Number:
    return min(numbers)


def _greatest(*numbers: Number) -> Number:
    return max(numbers)


_FUNCTIONS: Final[dict[str, Callable[..., Number]]] = {
    "round": _rounded,
    "abs": _magnitude,
    "min": _least,
    "max": _greatest,
    "sqrt": math.sqrt,
}
