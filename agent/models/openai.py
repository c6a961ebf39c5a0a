"""A client of servers that speak OpenAI's chat completions: OpenAI itself, and most others."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

import httpx

from agent.errors import ModelError, ModelUnavailable
from agent.models.base import ModelReply, ModelRequest, Price
from agent.models.connections import Connections, Response, Sending
from agent.models.offline import refuse_if_forbidden
from agent.models.openai_errors import failure_inside, failure_of_status, is_about_turns, unreadable
from agent.models.openai_reply import read_reply
from agent.models.openai_request import SchemaForm, request_bytes
from agent.models.server_address import base_url_of, server_address
from agent.models.strict_turns import in_strict_turns
from agent.models.untrusted import mapping, parsed
from agent.prices import price_of
from agent.redaction import redact
from agent.text import bounded

LONGEST_ATTEMPT: Final = 600.0
"""Seconds for one attempt, where neither the client nor the request says less."""

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_LONGEST_DETAIL: Final = 300


class OpenAIModel:
    """Asks a model behind an OpenAI-compatible server, one attempt for each request.

    Nothing is connected, and no key is needed, before the first request. Each event loop has connections of its own, so
    that a client made at import time works in several loops and in forked processes.

    Args:
        model: The model's name as the server knows it.
        base_url: Such as `http://127.0.0.1:8080/v1`; else `OPENAI_BASE_URL` of the environment, else OpenAI itself.
        api_key: Else `OPENAI_API_KEY` of the environment. It is shown in no error, log line or `repr`.
        price: What its tokens cost, for models that the price list does not know; `agent.prices.FREE` for nothing.
        timeout: Seconds for one attempt; a request that asks for less gets less.
        extra_body: Further fields of each request's body; they win over ours, and None leaves a field out.
        headers: Further headers of each request.
        schema_form: What becomes of the schemas of tools and results: `agent.schema.portable` for a server that refuses
            references, or enumerations of numbers.
        strict_turns: For servers that insist on one system message in front and on turns that alternate
            (`agent.models.strict_turns`). A server that refuses a request for the shape of its history is asked once more in
            this shape, and from then on in no other.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
        timeout: float = LONGEST_ATTEMPT,
        extra_body: Mapping[str, object] = _NOTHING,
        headers: Mapping[str, str] = _NO_HEADERS,
        schema_form: SchemaForm = dict,
        strict_turns: bool = False,
    ) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._price = price
        self._timeout = timeout
        self._extra_body = extra_body
        self._headers = headers
        self._schema_form = schema_form
        self._strict_turns = strict_turns
        self._connections: dict[asyncio.AbstractEventLoop, Connections] = {}

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r})"

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    @property
    def price(self) -> Price | None:
        return self._price or price_of(self._model, base_url=base_url_of(self._base_url))

    def check(self) -> None:
        """Looks whether a request could be sent, without sending one.

        Raises:
            ModelRefusedRequest: There is no key, or the URL or the key cannot be one; names the variable of the environment.
        """
        server_address(self._base_url, self._api_key, self._headers)

    async def complete(self, request: ModelRequest) -> ModelReply:
        refuse_if_forbidden(self.name)
        outcome = await self._attempt_in_shape(request)
        if isinstance(outcome, ModelError):  # raised out here, so that no chained cause can show what it must not
            raise outcome
        return outcome

    async def close(self) -> None:
        connections = self._connections.pop(asyncio.get_running_loop(), None)
        if connections is not None:
            await connections.close()

    async def _attempt_in_shape(self, request: ModelRequest) -> ModelReply | ModelError:
        """One attempt. A refusal of the history's shape is worth another, in the strict one."""
        if self._strict_turns:
            return await self._attempt(replace(request, messages=in_strict_turns(request.messages)))
        outcome = await self._attempt(request)
        if isinstance(outcome, ModelError) and is_about_turns(outcome):
            self._strict_turns = True
            return ModelUnavailable(f"{outcome}; asked again with strict turns", status=outcome.status, retry_after=0)
        return outcome

    async def _attempt(self, request: ModelRequest) -> ModelReply | ModelError:
        connections = self._connections_here()
        server = connections.server
        data = request_bytes(
            request,
            model=self._model,
            origin=self.name,
            output_limit_field=server.output_limit_field,
            extra_body=self._extra_body,
            schema_form=self._schema_form,
        )
        timeout = min(request.timeout, self._timeout)
        sending = Sending()
        try:
            async with asyncio.timeout(timeout):
                response = await connections.post(data, sending)
        except TimeoutError:
            return ModelUnavailable(f"{server.shown} did not answer within {timeout:g} s", billed=sending.done)
        except httpx.HTTPError as error:
            detail = bounded(redact(str(error)), _LONGEST_DETAIL)
            return ModelUnavailable(
                f"The connection to {server.shown} failed: {type(error).__name__} {detail}".rstrip(),
                billed=sending.done,
            )
        return _outcome(response, origin=self.name, now=datetime.now(UTC))

    def _connections_here(self) -> Connections:
        loop = asyncio.get_running_loop()
        connections = self._connections.get(loop)
        if connections is None:
            server = server_address(self._base_url, self._api_key, self._headers)
            for ended in [other for other in list(self._connections) if other.is_closed()]:
                self._connections.pop(ended, None)
            connections = self._connections[loop] = Connections(server)
        return connections


def _outcome(response: Response, *, origin: str, now: datetime) -> ModelReply | ModelError:
    status, headers = response.status, response.headers
    if not 200 <= status < 300:
        return failure_of_status(status, headers, response.body, now)
    try:
        body = parsed(response.body)
    except ValueError:
        return unreadable(status, headers, response.body)
    return (
        failure_inside(body, headers, now)
        or read_reply(mapping(body), origin=origin)
        or unreadable(status, headers, response.body)
    )
