"""Where an OpenAI-compatible server is and how to be let in, from arguments or from the environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from agent.errors import ModelRefusedRequest
from agent.redaction import register_secret

OPENAI_URL: Final = "https://api.openai.com/v1"

_HOSTS_OF_OPENAI: Final = ("api.openai.com", ".openai.azure.com")
_NAME_OF_A_SECRET: Final = re.compile(r"key|token|secret|auth|cookie|sig", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class ServerAddress:
    """One server.

    Attributes:
        url: Of its chat completions; may hold secrets, as may the headers.
        headers: To send with each request.
        shown: The address as it may be shown.
        output_limit_field: What the server calls the most output tokens.
    """

    url: httpx.URL
    headers: Mapping[str, str]
    shown: str
    output_limit_field: str

    def __repr__(self) -> str:
        return f"ServerAddress({self.shown!r})"


def base_url_of(base_url: str | None) -> str:
    """The given base URL, else that of the environment, else OpenAI's."""
    return (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).strip()


def server_address(base_url: str | None, api_key: str | None, headers: Mapping[str, str]) -> ServerAddress:
    """The address, with every secret of it registered, so that it is shown nowhere.

    Args:
        base_url: Such as `http://127.0.0.1:8080/v1`; without it that of the environment, `OPENAI_BASE_URL`.
        api_key: Without it that of the environment, `OPENAI_API_KEY`, where the address is the environment's or OpenAI's: a
            key goes to no host that it was not given for. Only OpenAI itself needs one.
        headers: Further headers.

    Raises:
        ModelRefusedRequest: There is no key, or the URL or the key cannot be one.
    """
    base = _parsed(base_url_of(base_url))
    of_environment = os.environ.get("OPENAI_API_KEY") if _is_of_environment(base) else None
    key = (api_key or of_environment or "").strip()
    register_secret(key)
    for name, value in headers.items():
        if _NAME_OF_A_SECRET.search(name):
            register_secret(value)
    if not key and base.host == httpx.URL(OPENAI_URL).host:
        raise ModelRefusedRequest("There is no API key. Set OPENAI_API_KEY, or OPENAI_BASE_URL to a server without one")
    if not (key.isascii() and key.isprintable()):
        raise ModelRefusedRequest("The API key holds a character that no key has: look at OPENAI_API_KEY")
    authorization = {"Authorization": f"Bearer {key}"} if key else {}
    return ServerAddress(
        url=base.copy_with(path=base.path.rstrip("/") + "/chat/completions"),
        headers={**authorization, **headers},
        shown=str(base.copy_with(query=None, fragment=None, userinfo=b"")),
        output_limit_field="max_completion_tokens" if base.host.endswith(_HOSTS_OF_OPENAI) else "max_tokens",
    )


def _is_of_environment(base: httpx.URL) -> bool:
    """Whether the key of the environment was given for this address."""
    return base.host in (httpx.URL(OPENAI_URL).host, _parsed(base_url_of(None)).host)


def _parsed(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    register_secret(url.password)
    for name, value in url.params.multi_items():
        if _NAME_OF_A_SECRET.search(name):
            register_secret(value)
    if url.scheme not in ("http", "https") or not url.host:
        raise ModelRefusedRequest(
            "The base URL of the model server must be like https://host/v1: look at OPENAI_BASE_URL"
        )
    return url
