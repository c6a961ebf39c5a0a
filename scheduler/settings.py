"""What the environment says about a deployment, read once and handed down. Nothing else reads `PAWL_…` variables.

A field's variable is its name: `lease_seconds` is `PAWL_LEASE_SECONDS`. An empty variable counts as not set.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic.dataclasses import dataclass

from agent.errors import ConfigurationError
from agent.redaction import register_secret
from scheduler.connection import connect_timeout_problem, socket_timeout_problem

# Within what Redis can count in milliseconds, and longer than nothing once they are.
Seconds = Annotated[float, Field(ge=0.001, le=1e9, allow_inf_nan=False)]
Days = Annotated[float, Field(ge=1e-5, le=1e6, allow_inf_nan=False)]


def _user_data_dir() -> Path:
    """Where this user's programs keep data; not the current folder, so that every shell finds the same runs."""
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/pawl")
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "pawl"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(hide_input_in_errors=True))
class Settings:
    """The settings of one deployment. Values that cannot be read, or that contradict each other, are refused.

    Raises (when built in code): pydantic.ValidationError. `from_environment` turns it into a ConfigurationError.
    """

    # Which Redis. Without a URL, a private server is started for `data_dir`, unless `embedded` is "never".
    redis_url: str | None = Field(default=None, repr=False)
    embedded: Literal["auto", "never"] = "auto"
    data_dir: Path = Field(default_factory=_user_data_dir, validate_default=True)
    namespace: str = Field(default="pawl", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    connect_timeout_seconds: float = 3.0
    socket_timeout_seconds: float = 5.0

    # Who may advance a run, and for how long without a sign of life.
    lease_seconds: Seconds = 6.0
    renew_seconds: Seconds = 1.5
    stall_limit_seconds: Seconds = 60.0

    # What the start of a tool that is not idempotent waits for: nothing, the disk, or a replica.
    sync_effects: Literal["off", "aof", "replica"] = "off"

    # How long the record outlives a run's end, a session its last run, a day's ledger its day.
    run_retention_days: Days = 7.0
    session_retention_days: Days = 30.0
    ledger_retention_days: Days = 400.0

    # In each worker process.
    tool_threads: int = Field(default=64, ge=1)

    # Console is for people, JSON for everything else; "auto" looks whether stderr is a terminal.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "console", "json"] = "auto"
    log_texts: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Reads the settings; the password of Redis becomes a secret that no log line shows.

        Raises:
            ConfigurationError: A value cannot be read or contradicts another; names the variable.
        """
        given = {field.name: environment.get(_variable(field.name), "").strip() for field in fields(cls)}
        try:
            settings = cls(**{name: value for name, value in given.items() if value})  # pyright: ignore[reportArgumentType]
        except ValidationError as error:
            raise ConfigurationError(_in_words(error)) from None
        if settings.redis_url is not None:
            register_secret(unquote(urlsplit(settings.redis_url).password or ""))
        return settings

    @field_validator("redis_url")
    @classmethod
    def _is_a_url_of_redis(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            complete = bool(parts.path) if parts.scheme == "unix" else bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise ValueError("the host or port cannot be read; a password must be percent-encoded") from None
        if parts.scheme not in ("redis", "rediss", "unix") or not complete:
            raise ValueError("must be redis://host:port/db, rediss://host:port/db or unix:///path/of/the/socket")
        return url

    @field_validator("connect_timeout_seconds")
    @classmethod
    def _is_time_to_connect(cls, seconds: float) -> float:
        if problem := connect_timeout_problem(seconds):
            raise ValueError(problem)
        return seconds

    @field_validator("socket_timeout_seconds")
    @classmethod
    def _outlasts_a_blocking_read(cls, seconds: float) -> float:
        if problem := socket_timeout_problem(seconds):
            raise ValueError(problem)
        return seconds

    @field_validator("data_dir")
    @classmethod
    def _is_absolute(cls, path: Path) -> Path:
        try:
            return path.expanduser().absolute()
        except RuntimeError:
            raise ValueError("this user has no home folder: name a folder here") from None

    def __post_init__(self) -> None:
        if self.renew_seconds > self.lease_seconds / 2:
            raise ValueError(
                f"PAWL_RENEW_SECONDS ({self.renew_seconds:g}) must be at most half of PAWL_LEASE_SECONDS "
                f"({self.lease_seconds:g}): one late renewal would cost a worker its runs"
            )
        if self.stall_limit_seconds < self.lease_seconds:
            raise ValueError(
                f"PAWL_STALL_LIMIT_SECONDS ({self.stall_limit_seconds:g}) must not be shorter than "
                f"PAWL_LEASE_SECONDS ({self.lease_seconds:g})"
            )


def _variable(field_name: str) -> str:
    return f"PAWL_{field_name.upper()}"


def _in_words(error: ValidationError) -> str:
    problems: list[str] = []
    for problem in error.errors(include_url=False, include_input=False):
        text = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
        problems.append(f"{_variable(str(problem['loc'][0]))} {text}" if problem["loc"] else text)
    return "; ".join(problems)
