#!/usr/bin/env python3
"""Plans Llama-3.1 405B with fsdp-bench: below 50 ms on 16,384 ranks, and no dearer there than on 16.

usage: planning_time.py FSDP_BENCH
"""
import json
import subprocess
import sys

LIMIT_MS = 50.0
# What two runs of the same work may differ by on a shared machine.
GROWTH = 1.5
PROFILES = ("fsdp2", "fsdp1")


def fastest_ms(bench):
    """By benchmark, the fastest repetition: noise only ever adds time."""
    command = [bench, "--benchmark_filter=^plan_405b/", "--benchmark_repetitions=5", "--benchmark_min_time=0.1",
               "--benchmark_format=json"]
    runs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["benchmarks"]
    times = {}
    for run in runs:
        if run["run_type"] == "iteration":
            name = run["run_name"]
            times[name] = min(times.get(name, float("inf")), run["real_time"])
            assert run["time_unit"] == "ms", run
    return times


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    times = fastest_ms(sys.argv[1])
    bad = False
    for profile in PROFILES:
        few, many = (times[f"plan_405b/{profile}/ranks:{ranks}"] for ranks in (16, 16384))
        print(f"{profile}: {few:.2f} ms on 16 ranks, {many:.2f} ms on 16384 (limit {LIMIT_MS:.0f} ms, "
              f"growth {many / few:.2f}, limit {GROWTH})")
        bad = bad or many >= LIMIT_MS or many > GROWTH * few
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
