"""A key goes to no host that it was not given for."""

import pytest

from agent.models.server_address import server_address


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")


@pytest.mark.parametrize("base_url", [None, "http://127.0.0.1:9/v1", "https://api.openai.com/v1"])
def test_the_key_of_the_environment_goes_to_its_own_address_and_to_openai(base_url: str | None):
    assert server_address(base_url, None, {}).headers["Authorization"] == "Bearer key-of-the-environment"


def test_it_goes_nowhere_else():
    assert "Authorization" not in server_address("https://models.example/v1", None, {}).headers
    given = server_address("https://models.example/v1", "key-for-it", {})
    assert given.headers["Authorization"] == "Bearer key-for-it"
