"""Benchmarks: each measures the real system against a peer or a promise. `make bench BENCH=polls`."""
