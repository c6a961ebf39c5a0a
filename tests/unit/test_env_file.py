"""The file `.env`: keys and addresses beside the code."""

from pathlib import Path

import pytest

from agent.env_file import load_env_file
from agent.errors import ConfigurationError


def written(folder: Path, text: str) -> Path:
    path = folder / ".env"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_the_file_says_is_there_afterwards(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "\ufeff# a comment\n\nOPENAI_API_KEY=sk-1\nexport OPENAI_BASE_URL = http://127.0.0.1:8080/v1  # the local one\n"
        "QUOTED=\"two words # no comment\"\nSINGLE='$HOME'\nEMPTY=\n  INDENTED=a b\n",
    )
    environment: dict[str, str] = {}

    names = load_env_file(path, environment)

    assert environment == {
        "OPENAI_API_KEY": "sk-1",
        "OPENAI_BASE_URL": "http://127.0.0.1:8080/v1",
        "QUOTED": "two words # no comment",
        "SINGLE": "$HOME",
        "EMPTY": "",
        "INDENTED": "a b",
    }
    assert names == list(environment)


def test_the_environment_wins(tmp_path: Path) -> None:
    environment = {"OPENAI_API_KEY": "mine"}

    assert load_env_file(written(tmp_path, "OPENAI_API_KEY=theirs\n"), environment) == []
    assert environment == {"OPENAI_API_KEY": "mine"}


def test_no_file_says_nothing(tmp_path: Path) -> None:
    assert load_env_file(tmp_path / ".env", {}) == []


@pytest.mark.parametrize(
    "line", ["OPENAI_API_KEY sk-secret", "=sk-secret", "A='sk-secret", 'A="x" sk-secret', "1A=sk-secret"]
)
def test_a_line_that_cannot_be_read_is_named_by_its_number_only(line: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="line 2") as refused:
        load_env_file(written(tmp_path, f"GOOD=1\n{line}\n"), {})

    assert "sk-secret" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigurationError, match="UnicodeDecodeError"):
        load_env_file(tmp_path / ".env", {})
