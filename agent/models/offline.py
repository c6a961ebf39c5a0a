"""A switch for tests: while it is on, no real model is asked."""

from collections.abc import Generator
from contextlib import contextmanager

from agent.errors import ModelRefusedRequest

_forbidden_by = 0


@contextmanager
def no_model_requests() -> Generator[None]:
    """While it is open, every client of a real model raises `ModelRefusedRequest` before it touches the network.

    It holds for the whole process and may be nested.
    """
    global _forbidden_by  # noqa: PLW0603 -- one switch for the process is what it is for
    _forbidden_by += 1
    try:
        yield
    finally:
        _forbidden_by -= 1


def refuse_if_forbidden(model: str) -> None:
    """What a client of a real model calls before each request.

    Raises:
        ModelRefusedRequest: `no_model_requests` is open.
    """
    if _forbidden_by:
        raise ModelRefusedRequest(
            f"{model} was asked while no_model_requests() is open: give the agent another one, by override(model=...)"
        )
