"""Who makes the steps: actors, leases, group commit, RQ and the command line."""
