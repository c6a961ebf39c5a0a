"""A real HTTP server on loopback that plays a model server, byte by byte, well behaved or not."""

import json
import socketserver
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import responses
from types import TracebackType
from typing import Final, Self, cast

NO_ANSWER: Final = b""
"""The server takes the request and stays silent."""


def http_answer(
    body: object = b"", *, status: int = 200, content_type: str = "application/json", **headers: str
) -> bytes:
    """A whole HTTP response. A body that is not text or bytes is written as JSON; `retry_after=` is `Retry-After:`."""
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [
        f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(data)}",
        "Connection: close",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def chat_reply(message: Mapping[str, object], **fields: object) -> dict[str, object]:
    """The usual outline around one message; `fields` go beside it, `finish_reason` into the choice."""
    finish_reason = fields.pop("finish_reason", "stop")
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
    return {"id": "r1", "object": "chat.completion", "model": "m", "choices": [choice], **fields}


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, object]


class _Listener(socketserver.ThreadingTCPServer):
    request_queue_size = 1024
    daemon_threads = True


class ModelServer:
    """Gives its answers in order; the last one again and again. Each on a connection of its own."""

    def __init__(self, *answers: bytes) -> None:
        self.received: list[Received] = []
        self._answers = list(answers)
        self._ended = threading.Event()
        self._server = _Listener(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """To be used as a base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                if answer := server.answer_to(self._request()):
                    self.wfile.write(answer)
                else:
                    server.wait_for_the_end()

            def _request(self) -> Received:
                path = self.rfile.readline().split()[1].decode()
                headers: dict[str, str] = {}
                while line := self.rfile.readline().strip().decode():
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                body = json.loads(self.rfile.read(int(headers["content-length"])))
                return Received(path, headers, cast("dict[str, object]", body))

        return Handler

    def answer_to(self, request: Received) -> bytes:
        self.received.append(request)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def wait_for_the_end(self) -> None:
        self._ended.wait()
