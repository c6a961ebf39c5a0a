"""The HTTP connections of one model client on one event loop."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from agent.models.http_logs import redact_http_logs
from agent.models.server_address import ServerAddress

CONNECT_TIMEOUT: Final = 10.0
"""Seconds to reach the server."""

MOST_IDLE: Final = 512
"""Connections kept open for later requests."""

LARGEST_RESPONSE: Final = 8 * 1024 * 1024
"""Bytes; what is longer is no reply of a model, and its rest is not read."""


@dataclass(slots=True)
class Sending:
    """Whether the server has the whole request: from then on the attempt may be billed, whatever becomes of it."""

    done: bool = False

    async def trace(self, event: str, _details: object) -> None:
        if event.endswith("send_request_body.complete"):
            self.done = True


@dataclass(frozen=True, slots=True)
class Response:
    """What came back; `headers` does not mind the case of names."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """As many connections as there are requests at once, and some idle ones.

    Each is an HTTP client of its own: one client's pool would look at all its connections for each request, which at
    500 of them takes twenty times as long as the request itself.
    """

    def __init__(self, server: ServerAddress) -> None:
        redact_http_logs()
        self.server = server
        self._tls = httpx.create_ssl_context()
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, data: bytes, sending: Sending) -> Response:
        """One exchange. It has no time-out of its own but for the way to the server.

        Raises:
            httpx.HTTPError: It did not come to its end.
        """
        client = self._idle.pop() if self._idle else self._new()
        try:
            return await self._exchange(client, data, sending)
        finally:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(client)
            else:
                await client.aclose()

    async def close(self) -> None:
        """Closes the idle ones; those in use are closed by whoever waits for them."""
        while self._idle:
            await self._idle.pop().aclose()

    def _new(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=self._tls,
            headers={**self.server.headers, "Content-Type": "application/json"},
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
        )

    async def _exchange(self, client: httpx.AsyncClient, data: bytes, sending: Sending) -> Response:
        extensions = {"trace": sending.trace}
        async with client.stream("POST", self.server.url, content=data, extensions=extensions) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > LARGEST_RESPONSE:
                    break
            return Response(response.status_code, response.headers, bytes(body))
