"""How fast, how small and how soon: every figure that Pawl promises, measured with real processes on a real server.

    python -m benchmarks [--quick] [floor steps waiting long takeover submit idle]

One JSON line on stdout for each benchmark, a summary for people on stderr. docs/benchmarks.md says what each one measures.
"""
