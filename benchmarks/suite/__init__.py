"""The performance suite: what scripts/run_perf_suite.sh runs. Standard library only."""
