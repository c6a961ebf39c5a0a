"""`pawl demo`: a server, two workers, twenty runs, and one worker killed half-way. See `worker.demo.show`."""

from worker.demo.show import DemoOptions, Summary, run_demo

__all__ = ["DemoOptions", "Summary", "run_demo"]
