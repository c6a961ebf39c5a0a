"""The rooms of the house: imports go one way, each outside library has its few doors, and every file is short."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "scheduler", "worker")

# Which of our packages a package may import, beside itself.
MAY_IMPORT = {"agent": (), "scheduler": ("agent",), "worker": ("scheduler", "agent")}

# RQ's own modules change with its versions: each storey meets them in one room.
RQ_DOORS = ("scheduler/rq_bridge/", "worker/rq_worker.py")

# Who speaks redis, or hands a client on to those who do. All others call verbs: think twice before you add a line.
REDIS_DOORS = (
    "scheduler/client/",
    "scheduler/connection.py",
    "scheduler/deployment.py",
    "scheduler/histories.py",
    "scheduler/index_pages.py",
    "scheduler/ledgers.py",
    "scheduler/published.py",
    "scheduler/rq_bridge/",
    "scheduler/scripting.py",
    "scheduler/store.py",
    "scheduler/sweeps/",
    "scheduler/unavailable.py",
    "scheduler/vitals.py",
    "scheduler/wire.py",
    "worker/batches.py",
    "worker/channels.py",
    "worker/claims.py",
    "worker/doorbell.py",
    "worker/leases.py",
    "worker/passing.py",
    "worker/processes.py",
    "worker/rq_worker.py",
    "worker/channels.py",
    "worker/durability.py",
    "worker/recall.py",
    "worker/service.py",
    "worker/supervisor.py",
)

# What reads a clock, waits, or reaches out of the process. A module that says PURE does none of it.
IMPURE = {"asyncio", "httpx", "os", "random", "redis", "rq", "socket", "subprocess", "threading", "time"}

LONGEST_FILE = 450  # lines

FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[str]:
    """The full name of every module that the file imports, at its top or within a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: write the whole name of the module"
            assert node.module is not None
            yield node.module


def first_words(path: Path) -> list[str]:
    """The words of the first paragraph of the module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return re.findall(r"\w+", docstring.partition("\n\n")[0].lower())


def packages_imported(path: Path) -> set[str]:
    return {module.partition(".")[0] for module in imports(path)}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_from_worker_to_scheduler_to_agent_only(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    allowed = {package, *MAY_IMPORT[package]}

    assert packages_imported(path) & {*PACKAGES, "tests", "benchmarks", "examples"} <= allowed


@pytest.mark.parametrize(("library", "doors"), [("rq", RQ_DOORS), ("redis", REDIS_DOORS)])
def test_a_library_is_imported_at_its_doors_only(library: str, doors: tuple[str, ...]) -> None:
    importers = [name_of(path) for path in FILES if library in packages_imported(path)]

    assert [name for name in importers if not name.startswith(doors)] == []
    assert [door for door in doors if not (ROOT / door).exists()] == []


def test_a_module_that_says_pure_is_pure() -> None:
    pure = [path for path in FILES if "pure" in first_words(path)]

    assert {"agent/step.py", "agent/state.py", "scheduler/lifecycle.py"} <= {name_of(path) for path in pure}
    assert {name_of(path): found for path in pure if (found := packages_imported(path) & IMPURE)} == {}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_importing_a_module_does_not_configure_logging(path: Path) -> None:
    """Only what runs on import counts: the top of the module and the bodies of its classes."""
    calls = [ast.unparse(node.func) for node in on_import(ast.parse(path.read_text())) if isinstance(node, ast.Call)]

    assert not {"structlog.configure", "logging.basicConfig", "configure", "logging.config.dictConfig"} & set(calls)


def on_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from on_import(child)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_file_is_short_enough_to_read_in_one_go(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_is_pickled_or_evaluated(path: Path) -> None:
    assert not packages_imported(path) & {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"eval", "exec"}
