"""Tools for files: what is in the folder, and no way out of it (case-129)."""

import os
import shutil
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.agent import Agent
from agent.errors import ToolError
from agent.events import ToolReturned
from agent.models.scripted import ScriptedModel, call, calls, say
from agent.toolbox import FileTools, file_tools
from agent.toolbox.files import decoded
from tests.support import virtual_time

SECRET = "key=hunter2"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the folder `ws` is, beside one that nobody shall see."""
    (tmp_path / "ws" / "notes").mkdir(parents=True)
    (tmp_path / "ws" / "in.txt").write_text("inside")
    (tmp_path / "ws" / "notes" / "deep.txt").write_text("deep")
    (tmp_path / "ws-secret").mkdir()
    (tmp_path / "ws-secret" / "creds").write_text(SECRET)
    return tmp_path


@pytest.fixture
def root(place: Path) -> Path:
    return place / "ws"


@pytest.fixture
def tools(root: Path) -> FileTools:
    return file_tools(root, max_bytes=1000)


def read(tools: FileTools, path: str) -> str:
    return tools.read_file.function(path)  # pyright: ignore[reportReturnType]


def write(tools: FileTools, path: str, content: str = "new") -> str:
    return tools.write_file.function(path, content)  # pyright: ignore[reportReturnType]


def listed(tools: FileTools, path: str = ".") -> list[str]:
    return tools.list_files.function(path)  # pyright: ignore[reportReturnType]


def snapshot(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


OUTSIDE = [
    "../ws-secret/creds", "/etc/passwd", "link/passwd", "a/../../ws-secret/creds", "%2e%2e/ws-secret/creds", "in.txt\x00.png",
    "~/x", "/proc/self/environ", "C:\\x", "C:/x", "..\\ws-secret\\creds", "notes/../../ws-secret/creds", "secret/creds",
    "up/ws-secret/creds", "..", "notes/..", "in.txt/..", "", ".", "in.txt/x", "nothing", "\ud800", "x" * 300, "a/" * 3000,
    "loop", "loop/x",
]  # fmt: skip


def test_only_what_is_inside_can_be_read(root: Path, place: Path, tools: FileTools):
    """case-129"""
    (root / "link").symlink_to("/etc")
    (root / "l2").symlink_to(root / "in.txt")
    (root / "secret").symlink_to(place / "ws-secret")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    assert (read(tools, "in.txt"), read(tools, "l2")) == ("inside", "inside")
    for path in OUTSIDE:
        with pytest.raises(ToolError) as refusal:
            read(tools, path)
        words = str(refusal.value)
        assert SECRET not in words
        assert "root:" not in words
        assert str(place) not in words
        assert "/etc" not in words.replace(repr(path), "")


def test_links_within_are_followed_and_read(root: Path, tools: FileTools):
    (root / "relative").symlink_to("notes/deep.txt")
    (root / "notes" / "back").symlink_to("../in.txt")
    (root / "folder").symlink_to(root / "notes")
    (root / "twice").symlink_to("folder")
    assert read(tools, "relative") == "deep"
    assert read(tools, "notes/back") == "inside"
    assert read(tools, "folder/deep.txt") == "deep"
    assert read(tools, "twice/back") == "inside"
    assert read(tools, "./notes//deep.txt") == "deep"


def test_a_root_behind_a_link(place: Path, root: Path):
    (place / "alias").symlink_to("ws")
    (root / "by_alias").symlink_to(place / "alias" / "in.txt")
    (root / "by_name").symlink_to(root / "in.txt")
    tools = file_tools(place / "alias")
    assert (read(tools, "by_alias"), read(tools, "by_name")) == ("inside", "inside")


def test_writing_stays_inside(root: Path, place: Path, tools: FileTools):
    """case-129"""
    (root / "link").symlink_to("/etc")
    (root / "secret").symlink_to(place / "ws-secret")
    (root / "l2").symlink_to("in.txt")
    (root / "dangling").symlink_to(place / "ws-secret" / "made")
    before = snapshot(place)
    for path in (
        "link/new.txt",
        "secret/new",
        "newdir/../../ws-secret/x",
        "l2",
        "dangling",
        "../x",
        "/tmp/x",
        "~/x",
        "notes",
        "a/..",
        "",
        "C:\\x",
    ):
        with pytest.raises(ToolError):
            write(tools, path)
    assert snapshot(place) == before
    assert (root / "in.txt").read_text() == "inside"
    assert (place / "ws-secret" / "creds").read_text() == SECRET


def test_what_is_written_can_be_read(root: Path, tools: FileTools):
    assert write(tools, "new/of/today.txt", "Grüße 🚀 \ud800") == "Wrote 16 bytes to new/of/today.txt."
    assert read(tools, "new/of/today.txt") == "Grüße 🚀 \ufffd"
    (root / "in.txt").chmod(0o640)
    write(tools, "in.txt", "other")
    assert read(tools, "in.txt") == "other"
    assert stat.S_IMODE((root / "in.txt").stat().st_mode) == 0o640
    assert listed(tools) == ["in.txt", "new/", "notes/"]


def test_a_write_that_fails_leaves_nothing_behind(root: Path, tools: FileTools, monkeypatch: pytest.MonkeyPatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left"):
        write(tools, "in.txt", "other")
    assert (root / "in.txt").read_text() == "inside"
    assert snapshot(root) == {"in.txt", "notes", "notes/deep.txt"}


def test_sizes(root: Path, tools: FileTools):
    (root / "large").write_bytes(b"x" * 1001)
    (root / "largest").write_bytes(b"x" * 1000)
    with (root / "sparse").open("wb") as file:
        file.truncate(10**12)
    for name in ("large", "sparse"):
        with pytest.raises(ToolError, match="more than 1,000 bytes"):
            read(tools, name)
    assert len(read(tools, "largest")) == 1000
    write(tools, "largest", "é" * 500)
    with pytest.raises(ToolError, match="1,002 bytes"):
        write(tools, "large", "é" * 501)


def test_what_is_no_file_is_not_opened(root: Path, tools: FileTools):
    os.mkfifo(root / "pipe")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(os.path.relpath(root / "socket"))
    unix.close()
    for name in ("pipe", "socket", "notes"):
        with pytest.raises(ToolError, match="is not a file"):
            read(tools, name)
        with pytest.raises(ToolError, match="is not a file"):
            write(tools, name)


def test_listing(root: Path, place: Path, tools: FileTools):
    """case-129: links are named and not followed."""
    (root / "link").symlink_to(place / "ws-secret")
    (root / "folder").symlink_to("notes")
    assert listed(tools) == ["folder", "in.txt", "link", "notes/"]
    assert listed(tools, "notes") == listed(tools, "folder") == listed(tools, "notes/.") == ["deep.txt"]
    for path in ("link", "..", "in.txt", "nothing", "/etc"):
        with pytest.raises(ToolError):
            listed(tools, path)


def test_long_lists_are_bounded(root: Path, tools: FileTools):
    for number in range(1001):
        (root / "notes" / f"{number}").touch()
    names = listed(tools, "notes")
    assert (len(names), names[-1]) == (1001, "… only 1,000 of them are listed")


def test_a_folder_that_is_not_there(tmp_path: Path):
    tools = file_tools(tmp_path / "later")
    with pytest.raises(ToolError, match=r"^The working folder cannot be opened: No such file or directory\.$"):
        read(tools, "in.txt")
    (tmp_path / "later").mkdir()
    assert write(tools, "in.txt") == "Wrote 3 bytes to in.txt."


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfwith mark", "with mark"),
        ("größer".encode("utf-16"), "größer"),
        (b"\xfe\xff" + "größer".encode("utf-16-be"), "größer"),
        ("größer".encode("utf-32"), "größer"),
        (b"\x00\x00\xfe\xff" + "größer".encode("utf-32-be"), "größer"),
        ("größer".encode("latin-1"), "gr\ufffd\ufffder"),
        (b"a\r\nb", "a\r\nb"),
        (b"", ""),
    ],
)
def test_encodings(content: bytes, text: str):
    assert decoded(content, "x") == text


@pytest.mark.parametrize("content", [b"\x7fELF\x00\x01", b"a\x00b", "a\x00b".encode("utf-16")])
def test_what_is_no_text_is_refused(content: bytes):
    with pytest.raises(ToolError, match="not a text file"):
        decoded(content, "x")


@given(st.binary(max_size=40))
def test_any_bytes_are_text_or_refused(content: bytes):
    try:
        text = decoded(content, "x")
    except ToolError:
        return
    assert "\ufffd" in text or text.encode() in content or content[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x00\x00")


@pytest.fixture
def swapping(root: Path, place: Path) -> Iterator[threading.Event]:
    """`turn` is a folder and a link to the outside, in quick turns."""
    (root / "turn").mkdir()
    (root / "turn" / "creds").write_text("harmless")
    (place / "as_link").symlink_to(place / "ws-secret")
    stop = threading.Event()

    def turn_into(form: Path) -> None:
        while True:
            try:
                form.rename(root / "turn")
            except OSError:  # a write that found nothing there has made a folder
                shutil.rmtree(root / "turn")
            else:
                return

    def swap() -> None:
        while not stop.is_set():
            (root / "turn").rename(place / "as_folder")
            turn_into(place / "as_link")
            (root / "turn").rename(place / "as_link")
            turn_into(place / "as_folder")

    thread = threading.Thread(target=swap)
    thread.start()
    yield stop
    stop.set()
    thread.join()


def test_a_race_leads_nowhere(place: Path, tools: FileTools, swapping: threading.Event):
    """case-129"""
    seen: set[str] = set()
    for _ in range(2000):
        try:
            seen.add(read(tools, "turn/creds"))
            write(tools, "turn/made", "x")
        except ToolError as refusal:
            seen.add(str(refusal))
    swapping.set()
    assert "harmless" in seen
    assert SECRET not in seen
    assert snapshot(place / "ws-secret") == {"creds"}


def test_an_agent_works_with_files(root: Path):
    model = ScriptedModel(
        [
            calls(call("read_file", path="in.txt"), call("read_file", path="/etc/passwd")),
            call("write_file", path="out.txt", content="seen"),
            call("list_files"),
            say("done"),
        ]
    )
    agent = Agent("Work.", tools=[*file_tools(root)], model=model)
    result = virtual_time.run(agent.run("go"))
    answers = [one.event for one in result.events if isinstance(one.event, ToolReturned)]
    answers.sort(key=lambda event: event.call)  # calls of one step end in any order
    assert [event.outcome for event in answers] == ["ok", "error", "ok", "ok"]
    assert [answers[0].content, answers[3].content] == ["inside", '["in.txt", "notes/", "out.txt"]']
