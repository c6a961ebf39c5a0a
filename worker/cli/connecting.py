"""How verbs reach runs: a client of the deployment that the environment names."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.client import AsyncClient
    from scheduler.settings import Settings


@contextlib.asynccontextmanager
async def client() -> AsyncGenerator[AsyncClient]:
    """An open client. Only warnings are logged.

    Raises:
        StoreUnavailable, ConfigurationError: The message says what to do.
    """
    from scheduler.client import AsyncClient  # noqa: PLC0415
    from scheduler.log import configure  # noqa: PLC0415

    settings = read_settings()
    configure(level="warning", form=settings.log_format)
    async with AsyncClient(settings=settings) as opened:
        yield opened


def configured() -> Settings:
    """The settings, with the log set up as they say: for verbs that work until they are told to end."""
    from scheduler.log import configure  # noqa: PLC0415

    settings = read_settings()
    configure(level=settings.log_level, form=settings.log_format)
    return settings


def read_settings() -> Settings:
    """The settings of the environment.

    Raises:
        ConfigurationError: Names the variable.
    """
    from scheduler.settings import Settings  # noqa: PLC0415

    return Settings.from_environment()
