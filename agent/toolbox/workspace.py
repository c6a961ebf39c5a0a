"""One folder that file tools may work in, and no way out of it.

A path is walked part by part from the folder's own descriptor, and every part is opened without following links; links are
read, and walked in the same way. So whatever changes meanwhile, no step leads outside, and nothing is checked that may be
gone when it is used. Errors speak of the path as it was given, never of where the folder is or a link leads.
"""

import contextlib
import errno
import itertools
import os
import re
import secrets
import stat
from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import Final

from agent.errors import ConfigurationError, ToolError

MOST_ENTRIES: Final = 1_000

_MOST_LINKS: Final = 40
_LONGEST_PATH: Final = 4_096
_UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_ABSOLUTE: Final = re.compile(r"[/~]|[A-Za-z]:")
_UNFINISHED: Final = ".unfinished-"

# Not everywhere there is each of them: see `Workspace`.
_FOLDER: Final = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)
_FILE: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Workspace:
    """A folder, and the files in it.

    Args:
        root: The folder. It is opened at each call, and need not be there before.

    Raises:
        ConfigurationError: The system cannot open files relative to a folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        if not {os.open, os.mkdir, os.rename, os.stat} <= os.supports_dir_fd:
            raise ConfigurationError(
                "file tools need a system that opens files relative to a folder, as Linux and macOS do"
            )
        self._root = Path(root).expanduser().absolute()

    def read(self, path: str, max_bytes: int) -> bytes:
        """The content of a file. Links are followed as long as they stay in the folder.

        Raises:
            ToolError: There is no such file, or it is too large.
        """
        with self._walking(path) as walk:
            name = walk.to(_parts(path), follow=True)
            mode = stat.S_IFDIR if name is None else _mode(name, walk.folder)
            if name is None or mode is None or not stat.S_ISREG(mode):
                raise ToolError(f"There is no {path!r}." if mode is None else f"{path!r} is not a file.")
            with open(os.open(name, _FILE, dir_fd=walk.folder), "rb") as file:  # noqa: PTH123 - a descriptor
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it was exchanged meanwhile
                    raise ToolError(f"{path!r} is not a file.")
                content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise ToolError(f"{path!r} has more than {max_bytes:,} bytes, which is the most that can be read.")
        return content

    def write(self, path: str, content: bytes) -> None:
        """Writes a file, at once or not at all, and the folders on the way to it. Links are not followed.

        Raises:
            ToolError: It cannot be written.
        """
        with self._walking(path) as walk:
            name = walk.to(_parts(path), follow=False, make=True)
            mode = None if name is None else _mode(name, walk.folder)
            if name is None or not (mode is None or stat.S_ISREG(mode)):
                raise ToolError(f"{path!r} is not a file.")
            unfinished = _UNFINISHED + secrets.token_hex(8)
            try:
                with open(os.open(unfinished, _NEW_FILE, 0o666, dir_fd=walk.folder), "wb") as file:  # noqa: PTH123
                    file.write(content)
                    if mode is not None:
                        os.fchmod(file.fileno(), stat.S_IMODE(mode))
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(unfinished, name, src_dir_fd=walk.folder, dst_dir_fd=walk.folder)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=walk.folder)
                raise

    def entries(self, path: str) -> list[str]:
        """The names in a folder, in order; those of folders end with `/`. Links are named, not followed.

        Raises:
            ToolError: There is no such folder.
        """
        with self._walking(path) as walk:
            name = walk.to(_parts(path), follow=True)
            if name is not None:
                walk.enter(name)
            with os.scandir(walk.folder) as found:
                entries = list(
                    itertools.islice((one for one in found if not one.name.startswith(_UNFINISHED)), MOST_ENTRIES + 1)
                )
                names = sorted(one.name + "/" * one.is_dir(follow_symlinks=False) for one in entries[:MOST_ENTRIES])
        return names if len(entries) <= MOST_ENTRIES else [*names, f"… only {MOST_ENTRIES:,} of them are listed"]

    @contextlib.contextmanager
    def _walking(self, path: str) -> Generator["_Walk"]:
        """A walk from the root. What the system refuses on it is said in words, of the path as it was given."""
        try:
            root = os.open(self._root, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        except OSError as error:
            raise ToolError(f"The working folder cannot be opened: {os.strerror(error.errno or 0)}.") from error
        walk = _Walk(self._root, root, path)
        try:
            yield walk
        except FileNotFoundError as error:
            raise ToolError(f"There is no {path!r}.") from error
        except OSError as error:
            words = "it is no folder" if error.errno in (errno.ENOTDIR, errno.ELOOP) else os.strerror(error.errno or 0)
            raise ToolError(f"{path!r}: {words}.") from error
        finally:
            walk.close()


class _Walk:
    """The way from the root to where a path leads: the open folders, one within the other."""

    def __init__(self, root: Path, descriptor: int, path: str) -> None:
        self._root = root
        self._folders = [descriptor]
        self._path = path

    @property
    def folder(self) -> int:
        """The descriptor of the folder that was reached."""
        return self._folders[-1]

    def close(self) -> None:
        """Closes all folders."""
        for descriptor in self._folders:
            os.close(descriptor)

    def to(self, parts: list[str], *, follow: bool, make: bool = False) -> str | None:
        """Walks to the folder of the last part, and returns its name; None where the path ends with the folder itself.

        Args:
            follow: Whether links are followed.
            make: Whether folders that are not there are made.
        """
        ahead = parts[::-1]
        links = 0
        while ahead:
            part = ahead.pop()
            if part == "..":
                self._leave()
                continue
            mode = _mode(part, self.folder)
            if mode is not None and stat.S_ISLNK(mode):
                links += 1
                if not follow or links > _MOST_LINKS:
                    raise ToolError(f"{self._path!r} leads through a link, which is not followed.")
                ahead += self._target(os.readlink(part, dir_fd=self.folder))[::-1]
            elif not ahead:
                return part
            else:
                if mode is None and make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=self.folder)
                self.enter(part)
        return None

    def enter(self, name: str) -> None:
        """Goes into a folder."""
        self._folders.append(os.open(name, _FOLDER, dir_fd=self.folder))

    def _leave(self) -> None:
        if len(self._folders) == 1:
            raise ToolError(f"{self._path!r} leads out of the working folder.")
        os.close(self._folders.pop())

    def _target(self, target: str) -> list[str]:
        """The parts of where a link leads, from here on; those of an absolute one begin at the root."""
        pure = PurePosixPath(target)
        if not pure.is_absolute():
            return list(pure.parts)
        for root in (self._root, Path(os.path.realpath(self._root))):
            if pure.parts[: len(root.parts)] == root.parts:
                while len(self._folders) > 1:
                    os.close(self._folders.pop())
                return list(pure.parts[len(root.parts) :])
        raise ToolError(f"{self._path!r} leads out of the working folder.")


def _mode(name: str, folder: int) -> int | None:
    """The mode of what a name in a folder is, be it a link; None where there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _parts(path: str) -> list[str]:
    """The parts of a path that a model wrote.

    Raises:
        ToolError: It could mean something outside, or nothing at all.
    """
    if _UNUSABLE.search(path) or len(path) > _LONGEST_PATH:
        raise ToolError(f"A path has at most {_LONGEST_PATH:,} characters, none for control, and / between folders.")
    parts = path.split("/")
    if _ABSOLUTE.match(path) or ".." in parts:
        raise ToolError(f"{path!r} is not a path within the working folder: begin there, and do without '..'.")
    return [part for part in parts if part not in ("", ".")]
