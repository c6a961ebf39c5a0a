"""The warden in this process: what it renews, and what it makes of a Redis that is away."""

import mmap
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest
import structlog

from agent.call_board import SIZE, CallBoard
from scheduler.policy import Policy
from tests.support.waiting import is_gone, wait_until
from worker.warden import Warden, is_stopped
from worker.warden_keeper import shared_memory


def told(url: str, **other: object) -> dict[str, Any]:
    """What a worker says first; here it is this process, and silent from the beginning."""
    return {
        "redis": {"url": url},
        "namespace": "pawl",
        "policy": asdict(Policy()),
        "renew_seconds": 0.0,
        "stall_limit": 60.0,
        "log": {},
        "worker": "w",
        "process": os.getpid(),
        "board": shared_memory(SIZE),
        **other,
    }


def test_a_redis_that_is_away_is_tried_again() -> None:
    warden = Warden(told("redis://127.0.0.1:1/0"))
    warden.hear(b'["hold", "1:a", "0-1"]')
    with structlog.testing.capture_logs() as lines:
        warden.look()
        warden.look()

    assert [line["event"] for line in lines] == ["lease_renewal_failed"] * 2


def test_nothing_is_renewed_beyond_the_limit() -> None:
    memory = shared_memory(SIZE)
    CallBoard(mmap.mmap(memory, SIZE)).begin("hog of run 0-1")
    warden = Warden(told("redis://127.0.0.1:1/0", stall_limit=0.0, board=memory))
    warden.hear(b'["hold", "1:a", "0-1"]')
    warden.hear(b'["beat"]')
    with structlog.testing.capture_logs() as lines:
        warden.look()
        warden.look()

    assert [(line["event"], line["tools"]) for line in lines] == [("leases_let_go", ["hog of run 0-1"])]


def test_what_a_worker_does_not_say_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not say"):
        Warden(told("redis://127.0.0.1:1/0")).hear(b'["bark"]')


def test_a_stopped_process_is_known() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert not is_stopped(process.pid)
        process.send_signal(signal.SIGSTOP)
        wait_until("it is stopped", lambda: is_stopped(process.pid))
        process.send_signal(signal.SIGCONT)
        wait_until("it is at work", lambda: not is_stopped(process.pid))
    finally:
        process.kill()
        process.wait()
    assert is_stopped(process.pid)


def test_a_warden_leaves_with_its_parent_though_a_child_holds_the_pipe() -> None:
    """A tool may have forked: the pipe then never ends."""
    code = (
        "import os, sys, time; from tests.contract.test_warden import told; import json, subprocess;"
        "told = told('redis://127.0.0.1:1/0'); start = 'from worker.warden import main; main()';"
        "warden = subprocess.Popen([sys.executable, '-c', start], stdin=-1, bufsize=0, pass_fds=[told['board']]);"
        "warden.stdin.write(json.dumps(told).encode() + b'\\n');"
        "child = os.fork();"
        "child or time.sleep(60);"
        "print(warden.pid, child, flush=True)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    warden, child = map(int, parent.stdout.readline().split())
    try:
        parent.wait(10)
        wait_until("the warden is gone", lambda: is_gone(warden), 5)
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()
