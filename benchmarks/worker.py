"""One worker process, or a parent with several: what `pawl worker benchmarks.agents` is, as its own program."""

import argparse
import asyncio
import os
import sys

from scheduler import log
from scheduler.deployment import Deployment
from worker.loading import load_agents
from worker.processes import Processes
from worker.service import WorkerOptions, serve

MODULE = "benchmarks.worker"
GRACE = 5.0


def command(*, concurrency: int, processes: int = 0, mark: str = "", parent: int = 0) -> list[str]:
    """The command line of a worker, or with `processes` of a parent that keeps as many."""
    options = {"concurrency": concurrency, "processes": processes, "mark": mark, "parent": parent}
    return [sys.executable, "-m", MODULE, *(f"--{option}={value}" for option, value in options.items())]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--mark", default="")
    parser.add_argument("--parent", type=int, default=0)
    asked = parser.parse_args()
    log.configure(form="json")
    deployment = Deployment()
    if asked.processes:
        parent = Processes(
            lambda mark: command(concurrency=asked.concurrency, mark=mark, parent=os.getpid()),
            asked.processes,
            deployment,
            grace=GRACE,
        )
        return asyncio.run(parent.run())
    options = WorkerOptions(concurrency=asked.concurrency, mark=asked.mark, parent=asked.parent, grace=GRACE)
    asyncio.run(serve(load_agents(["benchmarks.agents"]), deployment, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
