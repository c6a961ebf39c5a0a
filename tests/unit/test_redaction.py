"""No secret leaves the process: case-127."""

import ast
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent import redaction
from agent.redaction import REDACTED, names_a_secret, redact, register_secret

KEY = "sk-TEST1234567890abcdef"
COOKIES = {"cookies": {"a": "b", "c": "d"}, "user": "bob"}
HIDDEN_COOKIES = {"cookies": {"a": REDACTED, "c": REDACTED}, "user": "bob"}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of this test's own."""
    monkeypatch.setattr(redaction, "_registered", {})
    monkeypatch.setattr(redaction, "_literals", ())


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"the key {KEY} is wrong", "the key [redacted] is wrong"),
        (f"Authorization: Bearer {KEY}", "Authorization: [redacted]"),
        ("authorization=Basic dXNlcjpwYXNz", "authorization=[redacted]"),
        ("sent 'Bearer TESTTOKEN-abcdef0123456789'", "sent 'Bearer [redacted]'"),
        ("https://host/v1?key=abc&model=small", "https://host/v1?key=[redacted]&model=small"),
        ("GET /runs?after=7&access_token=abc HTTP/1.1", "GET /runs?after=7&access_token=[redacted] HTTP/1.1"),
        ("redis://:hunter2@host:6379/0", "redis://:[redacted]@host:6379/0"),
        ("rediss://user:p@s/s@host", "rediss://user:[redacted]@host"),
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=[redacted]"),
        ("{'x-api-key': 'abc def', 'n': 1}", "{'x-api-key': '[redacted]', 'n': 1}"),
        ("[(b'Authorization', b'abc'), (b'Host', b'h')]", "[(b'Authorization', b'[redacted]'), (b'Host', b'h')]"),
        ('{"password": "a \\" b", "n": 1}', '{"password": "[redacted]", "n": 1}'),
        ("Authorization: token abcdef123456 was refused", "Authorization: [redacted] was refused"),
        ("sent 'authorization: ApiKey abc', and", "sent 'authorization: [redacted]', and"),
        ("{'Authorization': 'Token abc', 'Host': 'h'}", "{'Authorization': '[redacted]', 'Host': 'h'}"),
        ('Authorization: Token token="a b", nonce="c"', "Authorization: [redacted]"),
        (
            "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/s3, Signature=fe5",
            "Authorization: [redacted]",
        ),
        ('Proxy-Authorization: Digest username="x", response="abc" is over', "Proxy-Authorization: [redacted] is over"),
        ("X-Auth-Token: Token abc", "X-Auth-Token: [redacted]"),
        ("X-Api-Key: abc", "X-Api-Key: [redacted]"),
        ("Cookie: session=abc; theme=dark\nHost: h", "Cookie: [redacted]\nHost: h"),
        ("Set-Cookie: sid=abc; Path=/; HttpOnly", "Set-Cookie: [redacted]"),
        (json.dumps({"cookie": "a=b; c=d", "n": 1}), '{"cookie": "[redacted]", "n": 1}'),
        (json.dumps({"set-cookie": ["sid=s3cr3t1; Path=/"], "n": 1}), '{"set-cookie": ["[redacted]"], "n": 1}'),
        (json.dumps({"cookie": ["a=b", "c=d"], "n": ["m"]}), '{"cookie": ["[redacted]"], "n": ["m"]}'),
        (json.dumps({"Authorization": ["Basic dXNlcjpwYXNz"]}), '{"Authorization": ["[redacted]"]}'),
        (json.dumps({"api_key": ["abc"], "n": 1}), '{"api_key": ["[redacted]"], "n": 1}'),
        ("map[Authorization:[Basic abc] Host:[h]]", "map[Authorization:[[redacted]] Host:[h]]"),
        ("<SimpleCookie: sid='abc' theme='d e'>", "<SimpleCookie: [redacted]>"),
        ("cookies={'sid': 'abc', 'n': 1}, user='bob'", "cookies={'sid': '[redacted]', 'n': 1}, user='bob'"),
        (json.dumps(COOKIES, indent=1), json.dumps(HIDDEN_COOKIES, indent=1)),
        (json.dumps(json.dumps(COOKIES)), json.dumps(json.dumps(HIDDEN_COOKIES))),
        ("[(b'Cookie', b'a=b'), (b'Host', b'h')]", "[(b'Cookie', b'[redacted]'), (b'Host', b'h')]"),
        ("Cookie: sid=abc, user=bob, status=403", "Cookie: [redacted], user=bob, status=403"),
        ("auth_token=abc123, user=bob, status=403", "auth_token=[redacted], user=bob, status=403"),
        ("Authorization: Basic dXNlcjo=, user=bob", "Authorization: [redacted], user=bob"),
        ('Authorization: OAuth a="b", c="d"; user=bob', "Authorization: [redacted]; user=bob"),
        ('Authorization: Signature keyId="x",signature="abc" is wrong', "Authorization: [redacted] is wrong"),
        (
            json.dumps({"e": "Authorization: Basic dXNlcjo=", "n": "a, b"}),
            '{"e": "Authorization: [redacted]", "n": "a, b"}',
        ),
        (json.dumps({"error": f"refused:\n{KEY}"}), '{"error": "refused:\\n[redacted]"}'),
        (json.dumps(json.dumps({"api_key": "a b"})), json.dumps(json.dumps({"api_key": REDACTED}))),
    ],
)
def test_a_secret_is_found_by_its_shape_and_the_text_still_reads(text: str, redacted: str) -> None:
    assert redact(text) == redacted
    assert redact(redacted) == redacted


KEYS = [
    *(f"gh{kind}_abcdefghijklmnopqrstuvwxyz0123456789" for kind in "pousr"),
    "github_pat_11ABCDEFG0abcdefghij_klmnop",
    "glpat-abcdefghij1234567890",
    *(f"xox{kind}-123456789012-abcdefghij" for kind in "abprs"),
    "gsk_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOP",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_a_well_known_kind_is_found_wherever_it_stands(key: str) -> None:
    for text in (
        "{}",
        "token: {}",
        "'{}' is refused",
        "x={}, y",
        "https://{}@host/",
        "a\n{}",
        r'"a\n{}"',
        "({})",
        "Token {}.",
    ):
        assert redact(text.format(key)) == text.format(REDACTED)


@pytest.mark.parametrize(
    "text",
    [
        "task-12345678, risk-averse-people and ask-questions",
        '{"token": "3:0190f2", "input_tokens": 1200, "output_tokens": 40}',
        "token=3:0190f2 step=4 idempotency_key=mail-42",
        "http://localhost:8000/v1/models and http://host:80/path?x=a@b",
        "redis://localhost:6379/0 and unix:///tmp/redis.sock?db=0",
        "401: missing bearer token",
        "authorization is required, cookies: 3, half_abcdefghijklmnop, graph_abcdefghijklmnop",
        "AKIA, ASIA, AIza, hf_hub_download, gsk_x, gho_st, xoxb- and glpat- are beginnings",
        "What is the key to happiness? The author's secret.",
        "hf_transformers, hf_pipelinefactory, my_hf_downloader, data/hf_datasetsv2.json, gsk_transformer1",
        "ghp_pagesofthewholerepositoryofours, ASIAPACIFICREGION, AKIAIOSFODNN7EXAMPLES and ASIAPACIFICREGIONALS",
        "level=info cookie=None, user=bob, run=r1, status=403",
        "The cookie: sweet, status=ok, user=bob",
        'def get(url: str, cookie: str = "", auth_token: str | None = None) -> Response:',
        "cookie: dict[str, str] = {}, cookies: dict[str, str] = {'a': 'b'}",
        "def open(password: str, api_key: Optional[str] = None, secret=None, auth_token: Any = None)",
        "cookie: a small cake",
        '["cookie", "host"]',
        '{"cookie": null, "auth_token": null, "password": null, "api_key": false, "secret": {"name": "n"}}',
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_no_sentence_of_our_own_looks_as_if_it_held_a_secret() -> None:
    """Such as "API key: set ...": the very word that says what to do would be taken out."""
    spoilt = [sentence for sentence in _sentences() if redact(sentence) != sentence]

    assert not spoilt


def _sentences() -> Iterator[str]:
    """All texts in the code of our packages but the docstrings, with a word in each gap."""
    rooms = Path(redaction.__file__).parents[1]
    for path in sorted(path for room in ("agent", "scheduler", "worker") for path in (rooms / room).rglob("*.py")):
        tree = ast.parse(path.read_text())
        statements = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            match node:
                case ast.JoinedStr(values=parts):
                    yield "".join(str(part.value) if isinstance(part, ast.Constant) else "gap" for part in parts)
                case ast.Constant(value=str(text)) if node not in statements:
                    yield text
                case _:
                    pass


@pytest.mark.parametrize("write", [str, json.dumps, repr])
def test_a_registered_secret_is_found_however_it_is_escaped(write: Callable[[str], str]) -> None:
    secret = 'no\\shape "ä" at all'
    register_secret(secret)

    assert redact(write(f"it was {secret}!")) == write(f"it was {REDACTED}!")


def test_a_registered_secret_is_found_quoted_in_a_url() -> None:
    register_secret("pass word/1")

    assert redact("https://host/pass%20word%2F1/") == "https://host/[redacted]/"


@pytest.mark.parametrize(
    "name",
    ["api_key", "OPENAI_API_KEY", "x-api-key", "password", "Authorization", "access_token", "auth_token", "set-cookie"],
)
def test_a_name_says_that_its_value_is_a_secret(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize("name", ["token", "input_tokens", "idempotency_key", "key", "secretary", "author"])
def test_other_names_do_not(name: str) -> None:
    assert not names_a_secret(name)


def test_the_longer_of_two_secrets_goes_first() -> None:
    register_secret("correct horse")
    register_secret("correct horse battery")

    assert redact("correct horse battery staple") == "[redacted] staple"


def test_what_would_hit_ordinary_words_is_not_registered() -> None:
    register_secret(None)
    register_secret("")
    register_secret("ollama")

    assert redact("an ollama model") == "an ollama model"


def test_the_registry_is_bounded() -> None:
    for number in range(redaction.MOST_SECRETS + 1):
        register_secret(f"secret number {number}.")

    assert redact("secret number 0. and secret number 1.") == f"secret number 0. and {REDACTED}"


def test_a_long_hostile_text_is_scanned_in_reasonable_time() -> None:
    started = time.process_time()
    parts = (
        "://a:",
        "?key",
        '"api_key": "\\',
        "bearer ",
        "sk-",
        "password'",
        "ghp_",
        "xoxb-",
        "AKIA",
        "authorization:",
    )
    headers = (
        'cookie: a="',
        "cookie: a; ",
        "cookie: a=b; ",
        "cookie: a='b' ",
        "cookies={'a':",
        "cookie=['a', ",
        "authorization: a=1,",
        "authorization: a b",
        "authorization: digest a=1,",
        "authorization: a-",
    )
    for part in (*parts, *headers, "gsk_", "hf_", 'password=["', "password=['a':"):
        redact(part * 20_000)

    assert time.process_time() - started < 3
