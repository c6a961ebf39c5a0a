"""The documents say what is so: every command and snippet is run, every link leads somewhere, and nothing is left out."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support.documents import DOCUMENTS, PARSED, ROOT, RUN, SHOWN, Block, Trial, anchors_of, blocks_of, links_of

SECONDS = 120.0  # stops what hangs: all documents together take half a minute on a machine with nothing else to do
READERS = {"json": json.loads, "yaml": yaml.safe_load, "toml": tomllib.loads}

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def marked(document: Path, languages: frozenset[str]) -> list[Block]:
    return [block for block in blocks_of(document.read_text()) if block.language in languages]


@each_document
def test_what_a_document_shows_is_what_happens(document: Path, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    folder.mkdir()
    trial = Trial(document, folder, {"PAWL_DATA_DIR": str(tmp_path / "data")})

    problems = trial.run(SECONDS)

    assert problems == [], "\n".join(problems)


@each_document
def test_every_block_says_what_it_is(document: Path) -> None:
    languages = {block.line: block.language for block in blocks_of(document.read_text())}

    assert {line: word for line, word in languages.items() if word not in RUN | PARSED | SHOWN} == {}


@each_document
def test_data_can_be_read(document: Path) -> None:
    for block in marked(document, PARSED):
        READERS[block.language](block.body)


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    lost: list[str] = []
    for link in links_of(document.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        is_there = target.is_relative_to(ROOT) and target.exists()
        if not is_there or (anchor and anchor not in anchors_of(target.read_text())):
            lost.append(link)

    assert lost == []
