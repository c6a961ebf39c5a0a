"""The OpenAI-compatible client against a real HTTP server: what each kind of answer means."""

import asyncio
import os
import socket
import traceback

import pytest

from agent.errors import ModelError, ModelRefusedRequest, ModelUnavailable
from agent.messages import Message, Role
from agent.models.base import ModelReply, ModelRequest, Price
from agent.models.offline import no_model_requests
from agent.models.openai import OpenAIModel
from agent.prices import FREE, per_million
from agent.redaction import redact
from tests.support.model_server import NO_ANSWER, ModelServer, chat_reply, http_answer

KEY = "sk-TEST1234567890abcdef"
HTML = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
ANSWER = http_answer(chat_reply({"content": "ok"}, usage={"prompt_tokens": 5, "completion_tokens": 1}))

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def request(text: str = "hi", *, timeout: float = 5.0) -> ModelRequest:
    return ModelRequest([Message(role=Role.USER, content=text)], max_tokens=10, timeout=timeout)


def ask(model: OpenAIModel, asked: ModelRequest | None = None) -> ModelReply:
    async def exchange() -> ModelReply:
        try:
            return await model.complete(asked or request())
        finally:
            await model.close()

    return asyncio.run(exchange())


def error_of(answer: bytes, *, timeout: float = 5.0) -> ModelError:
    with ModelServer(answer) as server, pytest.raises(ModelError) as caught:
        ask(OpenAIModel("m", base_url=server.url, api_key=KEY), request(timeout=timeout))
    return caught.value


def test_a_reply_and_what_was_sent_for_it():
    with ModelServer(ANSWER) as server:
        model = OpenAIModel("m", base_url=server.url + "/", api_key=KEY, headers={"X-Team": "seven"})
        reply = ask(model)
    assert (reply.content, reply.input_tokens, reply.output_tokens) == ("ok", 5, 1)
    (received,) = server.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["x-team"] == "seven"
    assert received.body == {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 10}


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    with ModelServer(ANSWER) as server:
        model = OpenAIModel("m")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        assert ask(model).content == "ok"
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_server_of_ones_own_needs_no_key_but_openai_does():
    with ModelServer(ANSWER) as server:
        assert ask(OpenAIModel("m", base_url=server.url)).content == "ok"
    assert "authorization" not in server.received[0].headers
    with pytest.raises(ModelRefusedRequest, match="Set OPENAI_API_KEY"):
        ask(OpenAIModel("gpt-4o"))


@pytest.mark.parametrize("base_url", ["127.0.0.1:80/v1", "ftp://host/v1", "https://", "http://[::1"])
def test_an_address_that_is_none_is_refused(base_url: str):
    with pytest.raises(ModelRefusedRequest, match="must be like https://host/v1"):
        ask(OpenAIModel("m", base_url=base_url, api_key=KEY))


@pytest.mark.parametrize("key", ["sk-ключ-123456789", "sk-two\nlines-123456"])
def test_a_key_that_is_none_is_refused_and_not_shown(key: str):
    with pytest.raises(ModelRefusedRequest) as caught:
        ask(OpenAIModel("m", base_url="http://127.0.0.1:9/v1", api_key=key))
    assert_shows_nothing_of(key, caught.value)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_refusals_are_not_worth_another_attempt(status: int):
    error = error_of(http_answer({"error": {"message": "this will not do"}}, status=status))
    assert isinstance(error, ModelRefusedRequest)
    assert (error.status, error.billed) == (status, False)
    assert str(error) == f"The model server answered {status}: this will not do"


def test_a_redirect_is_told_and_not_followed():
    error = error_of(http_answer(b"", status=301, location="https://host/v1/chat/completions"))
    assert isinstance(error, ModelRefusedRequest)
    assert "301: a redirect to https://host/v1/chat/completions; set the base URL" in str(error)


@pytest.mark.parametrize(
    ("status", "billed"),
    [(408, False), (409, False), (429, False), (500, False), (503, False), (502, True), (504, True)],
)
def test_temporary_failures_are_worth_another_attempt(status: int, billed: bool):
    error = error_of(http_answer({"error": "busy"}, status=status, retry_after="7"))
    assert isinstance(error, ModelUnavailable)
    assert (error.status, error.retry_after, error.billed) == (status, 7.0, billed)


def test_messages_are_bounded_and_found_where_servers_put_them():
    """One server writes `detail`, another a list around it all."""
    for body in ({"detail": "x" * 5000}, [{"error": {"message": "x" * 5000}}], {"message": "x" * 5000}):
        text = str(error_of(http_answer(body, status=400)))
        assert text.startswith("The model server answered 400: xxx")
        assert len(text) < 600


@pytest.mark.parametrize("status", [200, 502])
def test_a_page_in_place_of_a_reply(status: int):
    """case-027"""
    error = error_of(http_answer(HTML, status=status, content_type="text/html"))
    assert isinstance(error, ModelUnavailable)
    assert error.status == status
    assert "bad response from the model server" in str(error)
    assert "text/html" in str(error)
    assert "<h1>502 Bad Gateway" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        http_answer(b""),
        http_answer("Internal Server Error", content_type="text/plain"),
        http_answer(b"", status=204),
        http_answer("[]"),
        http_answer({"choices": []}),
        http_answer({"choices": [None]}),
        http_answer("[" * 100_000),
        http_answer(b'{"choices": "\xff'),
    ],
)
def test_a_success_without_a_reply_may_be_billed(answer: bytes):
    """case-027: never an empty answer."""
    error = error_of(answer)
    assert isinstance(error, ModelUnavailable)
    assert error.billed


@pytest.mark.parametrize(
    ("error_object", "kind", "status"),
    [
        ({"code": 429, "message": "rate limited"}, ModelUnavailable, 429),
        ({"code": "429", "message": "rate limited"}, ModelUnavailable, 429),
        ({"code": "rate_limit_exceeded", "message": "rate limited"}, ModelUnavailable, 429),
        ({"message": "quota exceeded", "code": None}, ModelUnavailable, 500),
        ({"type": "invalid_request_error", "message": "no"}, ModelRefusedRequest, 400),
        ("something", ModelUnavailable, 500),
    ],
)
def test_an_error_inside_a_success_is_that_error(error_object: object, kind: type[ModelError], status: int):
    """case-023, case-015"""
    error = error_of(http_answer({"error": error_object}))
    assert type(error) is kind
    assert error.status == status


def test_a_body_that_is_cut_may_be_billed():
    whole = ANSWER
    for end in (len(whole) - 10, len(whole) - 60, 20):
        error = error_of(whole[:end])
        assert isinstance(error, ModelUnavailable)
        assert error.billed


def test_a_time_out_may_be_billed():
    error = error_of(NO_ANSWER, timeout=0.2)
    assert isinstance(error, ModelUnavailable)
    assert error.billed
    assert "did not answer within 0.2 s" in str(error)


def test_a_server_that_drips_is_timed_out_as_a_whole():
    """Servers that keep a connection alive with blanks never run into a time-out between two bytes."""
    error = error_of(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n   ", timeout=0.2
    )
    assert isinstance(error, ModelUnavailable)
    assert error.billed


def test_what_never_reached_a_server_is_not_billed():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(ModelUnavailable) as caught:
            ask(OpenAIModel("m", base_url=url, api_key=KEY))
    assert not caught.value.billed
    assert "ConnectError" in str(caught.value)


def test_a_response_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent.models.connections.LARGEST_RESPONSE", 1000)
    error = error_of(http_answer(" " * 5000))
    assert isinstance(error, ModelUnavailable)


def test_one_client_in_two_loops_and_in_a_fork():
    """case-090"""
    with ModelServer(ANSWER) as server:
        model = OpenAIModel("m", base_url=server.url, api_key=KEY)

        async def without_closing() -> str | None:
            return (await model.complete(request())).content

        assert asyncio.run(without_closing()) == "ok"
        assert asyncio.run(without_closing()) == "ok"
        child = os.fork()
        if child == 0:
            os._exit(0 if asyncio.run(without_closing()) == "ok" else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert asyncio.run(without_closing()) == "ok"


def test_many_at_once_and_again():
    with ModelServer(ANSWER) as server:
        model = OpenAIModel("m", base_url=server.url, api_key=KEY)

        async def all_at_once() -> list[ModelReply]:
            replies = await asyncio.gather(*(model.complete(request(str(number))) for number in range(50)))
            replies += await asyncio.gather(*(model.complete(request()) for _ in range(10)))
            await model.close()
            return replies

        assert [reply.content for reply in asyncio.run(all_at_once())] == ["ok"] * 60
    asked = [item.body["messages"] for item in server.received]
    assert all([{"role": "user", "content": str(number)}] in asked for number in range(50))


def test_no_request_while_they_are_forbidden():
    with ModelServer(ANSWER) as server:
        model = OpenAIModel("m", base_url=server.url, api_key=KEY)
        with no_model_requests(), no_model_requests(), pytest.raises(ModelRefusedRequest, match="openai:m was asked"):
            ask(model)
        assert server.received == []
        assert ask(model).content == "ok"


def test_a_price_is_the_given_one_or_the_listed_one_of_that_server():
    given = per_million(input="0.1", output="0.2")
    assert OpenAIModel("gpt-4o", price=given).price == given
    assert OpenAIModel("llama3.2", base_url="http://127.0.0.1:8080/v1", price=FREE).price == FREE
    assert isinstance(OpenAIModel("gpt-4o").price, Price)
    assert OpenAIModel("gpt-4o", base_url="http://127.0.0.1:8080/v1").price is None


def assert_shows_nothing_of(secret: str, error: BaseException) -> None:
    told = traceback.TracebackException.from_exception(error)
    with_locals = traceback.TracebackException.from_exception(error, capture_locals=True)
    for text in (str(error), repr(error), "".join(told.format()), redact("".join(with_locals.format()))):
        assert secret not in text
    assert error.__cause__ is None
    assert error.__context__ is None


def test_no_error_and_no_log_line_shows_the_key(caplog: pytest.LogCaptureFixture):
    """case-127: in the URL, in the header, echoed by the server, at every log level, on every way to fail."""
    caplog.set_level("DEBUG")
    echo = http_answer(f"no such key: {KEY}, Bearer {KEY}", status=500, content_type="text/plain")
    not_found = http_answer({"error": {"message": f"unknown path ?key={KEY}"}}, status=404)
    with ModelServer(not_found, echo, NO_ANSWER) as server:
        model = OpenAIModel("m", base_url=f"{server.url}?key={KEY}", api_key=KEY)
        for timeout in (5.0, 5.0, 0.2):
            with pytest.raises(ModelError) as caught:
                ask(model, request(timeout=timeout))
            assert_shows_nothing_of(KEY, caught.value)
        assert [item.path for item in server.received] == [f"/v1/chat/completions?key={KEY}"] * 3
    with pytest.raises(ModelUnavailable) as unreachable:
        ask(model)
    assert_shows_nothing_of(KEY, unreachable.value)
    assert KEY not in repr(model)
    assert "chat/completions" in caplog.text
    assert KEY not in caplog.text


def test_a_password_in_the_address_is_not_shown():
    model = OpenAIModel("m", base_url="http://user:opensesame77@127.0.0.1:9/v1", api_key=KEY)
    with pytest.raises(ModelUnavailable) as caught:
        ask(model)
    assert "http://127.0.0.1:9/v1" in str(caught.value)
    assert_shows_nothing_of("opensesame77", caught.value)
