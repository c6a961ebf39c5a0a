"""`python -m worker.cli` is `pawl`."""

from worker.cli import main

main()
