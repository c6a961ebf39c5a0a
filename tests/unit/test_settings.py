"""The environment is read once; what cannot be right is refused by its variable's name."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.errors import ConfigurationError
from agent.redaction import redact
from scheduler.connection import check_url
from scheduler.settings import Settings


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    settings = Settings.from_environment({})

    assert settings.redis_url is None
    assert (settings.lease_seconds, settings.renew_seconds, settings.stall_limit_seconds) == (6, 1.5, 60)
    assert (settings.run_retention_days, settings.session_retention_days, settings.ledger_retention_days) == (
        7,
        30,
        400,
    )
    assert settings.sync_effects == "off"
    assert settings.data_dir.is_absolute()
    assert settings.data_dir != Path.cwd()


def test_a_variable_is_the_field_in_capitals_and_an_empty_one_is_not_set() -> None:
    settings = Settings.from_environment(
        {
            "PAWL_REDIS_URL": "redis://localhost:6379/3",
            "PAWL_LEASE_SECONDS": "1",
            "PAWL_RENEW_SECONDS": "0.25",
            "PAWL_LOG_TEXTS": "on",
            "PAWL_DATA_DIR": "~/elsewhere",
            "PAWL_NAMESPACE": "",
            "PAWL_SERVICE_HOST": "10.0.0.1",
        }
    )

    assert settings.redis_url == "redis://localhost:6379/3"
    assert (settings.lease_seconds, settings.renew_seconds) == (1, 0.25)
    assert settings.log_texts is True
    assert settings.data_dir == Path.home() / "elsewhere"
    assert settings.namespace == "pawl"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PAWL_REDIS_URL", "localhost:6379"),
        ("PAWL_REDIS_URL", "http://localhost:6379"),
        ("PAWL_REDIS_URL", "redis://"),
        ("PAWL_REDIS_URL", "redis://host:99999"),
        ("PAWL_REDIS_URL", "unix://"),
        ("PAWL_EMBEDDED", "no"),
        ("PAWL_NAMESPACE", "{a}"),
        ("PAWL_LEASE_SECONDS", "6s"),
        ("PAWL_LEASE_SECONDS", "-1"),
        ("PAWL_LEASE_SECONDS", "nan"),
        ("PAWL_LEASE_SECONDS", "1e300"),
        ("PAWL_RUN_RETENTION_DAYS", "0"),
        ("PAWL_RUN_RETENTION_DAYS", "1e-300"),
        ("PAWL_SESSION_RETENTION_DAYS", "1e12"),
        ("PAWL_SOCKET_TIMEOUT_SECONDS", "soon"),
        ("PAWL_SYNC_EFFECTS", "disk"),
        ("PAWL_TOOL_THREADS", "0"),
        ("PAWL_LOG_LEVEL", "loud"),
        ("PAWL_DATA_DIR", "~nobody-of-this-name/x"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_by_its_variable(variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{variable} "):
        Settings.from_environment({variable: value})


@pytest.mark.parametrize(
    ("environment", "both"),
    [
        ({"PAWL_LEASE_SECONDS": "1"}, ("PAWL_RENEW_SECONDS (1.5)", "PAWL_LEASE_SECONDS (1)")),
        ({"PAWL_STALL_LIMIT_SECONDS": "2"}, ("PAWL_STALL_LIMIT_SECONDS (2)", "PAWL_LEASE_SECONDS (6)")),
    ],
)
def test_values_that_contradict_each_other_are_both_named(environment: dict[str, str], both: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        Settings.from_environment(environment)

    assert all(name in str(refusal.value) for name in both)


@pytest.mark.parametrize(
    ("setting", "option", "fitting", "others"),
    [
        ("PAWL_SOCKET_TIMEOUT_SECONDS", "socket_timeout", ("2", "60"), ("0", "0.5", "1.99", "61", "nan", "inf", "-5")),
        ("PAWL_CONNECT_TIMEOUT_SECONDS", "socket_connect_timeout", ("0.1", "60"), ("0", "0.05", "61", "nan", "inf")),
    ],
)
def test_a_limit_of_time_has_the_same_bounds_as_a_setting_and_in_the_url(
    setting: str, option: str, fitting: tuple[str, ...], others: tuple[str, ...]
) -> None:
    for value in fitting:
        Settings.from_environment({setting: value})
        check_url(f"redis://host?{option}={value}")
    for value in others:
        with pytest.raises(ConfigurationError, match=f"^{setting} must be {fitting[0]} to {fitting[1]} seconds: "):
            Settings.from_environment({setting: value})
        with pytest.raises(ConfigurationError, match=f"{option} must be {fitting[0]} to {fitting[1]} seconds: "):
            check_url(f"redis://host?{option}={value}")


def test_settings_built_in_code_are_checked_as_well() -> None:
    with pytest.raises(ValidationError, match="PAWL_RENEW_SECONDS"):
        Settings(lease_seconds=2, renew_seconds=2)
    with pytest.raises(ValidationError, match=r"socket_timeout_seconds\n.*must be 2 to 60 seconds"):
        Settings(socket_timeout_seconds=0.5)


def test_the_password_of_redis_is_never_shown() -> None:
    settings = Settings.from_environment({"PAWL_REDIS_URL": "redis://:correct%20horse@localhost:6379"})

    assert "horse" not in repr(settings)
    assert redact("WRONGPASS for 'correct horse'") == "WRONGPASS for '[redacted]'"
    with pytest.raises(ConfigurationError) as refusal:
        Settings.from_environment({"PAWL_REDIS_URL": "redis://:correct/horse@localhost:port"})
    assert "horse" not in str(refusal.value)
