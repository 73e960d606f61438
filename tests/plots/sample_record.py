"""A made-up but plausible record, valid under the schema, for the tests of plots/.

    python3 tests/plots/sample_record.py FILE [--simulated] [--blocks 12] [--sizes 1 2 4]

Nothing in it was measured: a small event model lays out one step, and noise makes the samples.
"""

import argparse
import itertools
import json
import random

RANKS = 2
BLOCK_BYTES = 7_087_872 * 2  # a GPT-2 block in bf16
HEAD_BYTES = 6_500_000 * 2
COMPUTE_NS_A_BLOCK = 9.0e6  # forward
WIRE_NS_A_BYTE = 0.34
COPY_NS_A_BYTE = 0.05
LATENCY_NS = 120_000


class Step:
    """Streams as clocks: an operation starts when its stream and what it waits for are done."""

    def __init__(self, stretch):
        self.clock = dict.fromkeys(
            ("compute", "all_gather_copy_in", "all_gather", "reduce_scatter"), 0.0)
        self.rows = []
        self.stretch = stretch

    def run(self, stream, operation, unit, phase, duration_ns, after=0.0):
        start = max(self.clock[stream], after)
        end = start + duration_ns * self.stretch(operation)
        self.clock[stream] = end
        self.rows.append({"stream": stream, "operation": operation, "unit": unit, "phase": phase,
                          "start_ns": int(start), "end_ns": int(end)})
        return end

    def gather(self, unit, size, phase, after):
        cast = self.run("all_gather_copy_in", "cast", unit, phase, size * COPY_NS_A_BYTE, after)
        copied = self.run("all_gather_copy_in", "copy_in", unit, phase, size * COPY_NS_A_BYTE / 2,
                          cast)
        return self.run("all_gather", "all_gather", unit, phase,
                        LATENCY_NS + size * WIRE_NS_A_BYTE, copied)

    def end(self):
        return max(self.clock.values())


def units_of(blocks, size):
    """(name, bytes, blocks) of the root and of the blocks, `size` a unit."""
    units = [("root", HEAD_BYTES, 1)]
    for first in range(0, blocks, size):
        inside = range(first, min(first + size, blocks))
        units.append(("+".join(f"transformer.h.{i}" for i in inside), BLOCK_BYTES * len(inside),
                      len(inside)))
    return units


def one_step(blocks, size, forward, backward, reshard, stretch=lambda operation: 1.0):
    step = Step(stretch)
    units = units_of(blocks, size)
    ends = [0.0] * len(units)
    for i, (name, _, count) in enumerate(units):
        if i == 0:
            for j in range(min(forward, len(units) - 1) + 1):
                ends[j] = step.gather(units[j][0], units[j][1], "forward", 0.0)
        elif i + forward < len(units):
            j = i + forward
            ends[j] = step.gather(units[j][0], units[j][1], "forward",
                                  step.clock["compute"] - 1e6)
        ready = step.run("compute", "copy_out", name, "forward", units[i][1] * COPY_NS_A_BYTE,
                         ends[i])
        step.run("compute", "compute", name, "forward", count * COMPUTE_NS_A_BLOCK, ready)
    order = list(reversed(range(len(units))))
    gathered = {}
    for place, i in enumerate(order):
        name, bytes_, count = units[i]
        for j in order[place:place + backward + 1]:
            if j not in gathered and reshard and j != 0:
                gathered[j] = step.gather(units[j][0], units[j][1], "backward",
                                          step.clock["compute"] - 2e6)
                step.rows[-1]["unit"] = units[j][0]
        ready = step.clock["compute"]
        if i in gathered:
            ready = step.run("compute", "copy_out", name, "backward", bytes_ * COPY_NS_A_BYTE,
                             gathered[i])
        done = step.run("compute", "compute", name, "backward", 2 * count * COMPUTE_NS_A_BLOCK,
                        ready)
        packed = step.run("reduce_scatter", "chunk_cat", name, "backward",
                          2 * bytes_ * COPY_NS_A_BYTE, done)
        step.run("reduce_scatter", "reduce_scatter", name, "backward",
                 LATENCY_NS + 2 * bytes_ * WIRE_NS_A_BYTE, packed)
    return step


def memory_of(blocks, size, forward, backward, reshard):
    units = units_of(blocks, size)
    total = sum(bytes_ for _, bytes_, _ in units)
    resident = 2 * 2 * total // RANKS
    largest = max(bytes_ for _, bytes_, _ in units)
    live = total if not reshard else min(total, largest * (2 + max(forward, backward)))
    transient = live + 4 * largest
    return {"resident_bytes": resident, "optimizer_bytes": 2 * resident,
            "transient_live_bytes": transient, "arenas_bytes": resident + transient,
            "total_bytes": 3 * resident + transient}


def summary(samples):
    ordered = sorted(samples)
    low, high = (ordered[2], ordered[-3]) if len(ordered) >= 9 else (None, None)
    return {"n": len(ordered), "median_ns": ordered[len(ordered) // 2], "low_ns": low,
            "high_ns": high}


def measurement_of(step_ns, dice):
    ranks = [[step_ns * (1 + abs(dice.gauss(0, 0.025))) for _ in range(RANKS)] for _ in range(15)]
    steps = [max(row) for row in ranks]
    return {"summary": summary(steps), "step_ns": steps, "rank_step_ns": ranks,
            "warmup_steps": 2, "verified_steps": 1, "stopped": "relative error 1.8 % <= 2 %"}


def candidate_of(blocks, knobs, is_default):
    size, forward, backward, reshard = knobs
    wrap = "a unit a block" if size == 1 else f"a unit every {size} blocks"
    return {
        "policy": f"{wrap}, prefetch {forward}/{backward}, {'reshard' if reshard else 'keep'}",
        "unit_blocks": size, "forward_prefetch": forward, "backward_prefetch": backward,
        "reshard_after_forward": "reshard" if reshard else "keep", "is_default": is_default,
        "outcome": "pruned by simulation", "units": len(units_of(blocks, size)),
        "schedule_hash": f"{hash(knobs) & (2**64 - 1):016x}",
        "memory": memory_of(blocks, *knobs),
        "predicted_step_ns": one_step(blocks, *knobs).end(),
        "measurement": None, "against_default": None, "metrics": None,
        "allocated_bytes": None, "peak_live_bytes": None,
    }


def measure(candidate, step_ns, dice):
    candidate["measurement"] = measurement_of(step_ns, dice)
    candidate["outcome"] = "measured"
    candidate["metrics"] = {
        "step_ns": int(step_ns), "compute_ns": int(0.8 * step_ns), "copies_ns": int(0.05 * step_ns),
        "collectives_ns": int(0.5 * step_ns), "exposed_wait_ns": int(0.2 * step_ns),
        "all_gather_busbw_bytes_per_second": 1.4e9, "reduce_scatter_busbw_bytes_per_second": 1.3e9}
    candidate["allocated_bytes"] = candidate["memory"]["arenas_bytes"]
    candidate["peak_live_bytes"] = candidate["memory"]["transient_live_bytes"]


def compare(candidate, default):
    ours, theirs = candidate["measurement"]["step_ns"], default["measurement"]["step_ns"]
    difference = summary([a - b for a, b in zip(ours, theirs)])
    relative = difference["median_ns"] / default["measurement"]["summary"]["median_ns"]
    verdict = "no difference shown" if abs(relative) < 0.01 else \
        "faster" if relative < 0 else "slower"
    candidate["against_default"] = {"verdict": verdict, "relative": relative,
                                    "difference": difference}


CLUSTER = {
    "name": "sample", "origin": "illustrative", "ranks": RANKS,
    "collectives": [{"kind": "all_gather", "dtype": "bf16", "ranks": RANKS,
                     "points": [{"bytes": 65536, "time_ns": 140000},
                                {"bytes": 16777216, "time_ns": 5800000}]}],
    "copies": [{"kind": "cast", "points": [{"bytes": 65536, "time_ns": 3300}]}],
    "gemms": [{"batch": 1, "m": 1024, "n": 3072, "k": 768, "dtype": "bf16", "time_ns": 9000000}],
    "gemm_rate_flops_per_second": 2.4e11, "gemm_latency_ns": 5000, "issue_cost_ns": 800,
}

ENVIRONMENT = {
    "tool_version": "0.1.0", "git_state": "unknown", "started_utc": "2025-01-01T00:00:00Z",
    "hosts": ["sample"] * RANKS, "cpu": "sample CPU", "logical_cpus": 2,
    "libraries": {"MPI": "sample"}, "variables": {"OMP_NUM_THREADS": "1"},
}


def make_record(blocks=12, sizes=(1, 2, 4), simulated=False, measured=6, seed=1):
    dice = random.Random(seed)
    space = list(itertools.product(sizes, (0, 1, 2), (1, 2), (True, False)))
    default_knobs = (sizes[0], 0, 1, True)
    candidates = [candidate_of(blocks, knobs, knobs == default_knobs) for knobs in space]
    default = space.index(default_knobs)
    limit = int(0.995 * max(some["memory"]["total_bytes"] for some in candidates))
    fits = [i for i, some in enumerate(candidates) if some["memory"]["total_bytes"] <= limit]
    ranked = sorted(fits, key=lambda i: candidates[i]["predicted_step_ns"])
    for i in set(range(len(space))) - set(fits):
        candidates[i]["outcome"] = "does not fit: above the memory limit"
    # Some far down the list too, so that a figure shows where the model errs.
    chosen = [default] + [i for i in ranked[:measured - 3] + ranked[8:24:8] if i != default]
    for i in chosen[:measured]:
        step_ns = candidates[i]["predicted_step_ns"] * dice.uniform(1.01, 1.09)
        measure(candidates[i], step_ns, dice)
    run = [i for i in chosen[:measured]]
    for i in run:
        if i != default:
            compare(candidates[i], candidates[default])
    winner = min(run, key=lambda i: candidates[i]["measurement"]["summary"]["median_ns"])
    knobs = space[winner]
    noisy = one_step(blocks, *knobs, stretch=lambda operation: dice.uniform(0.97, 1.18))
    return {
        "fsdp_tune_record": 1, "command": "tune", "backend": "sim" if simulated else "mpi",
        "provenance": "simulated: not a measurement" if simulated else "measured",
        "verdict": "this is a made-up sample for the tests of the figures: nothing in it was "
                   "measured, and no machine behaves like this",
        "model": {"name": "GPT-2 124M", "scaling": "vocabulary 50257 -> 4096",
                  "parameters": 88_984_320},
        "mesh": {"replicate": 1, "shard": RANKS}, "tokens_per_rank": 1024,
        "memory_limit_bytes": limit, "seed": seed, "default_index": default,
        "winner_index": winner, "candidates": candidates, "winner_timeline": noisy.rows,
        "winner_predicted_timeline": one_step(blocks, *knobs).rows, "cluster": CLUSTER,
        "environment": ENVIRONMENT, "config_yaml": "model: models/gpt2.yaml\n",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    record = make_record(options.blocks, tuple(options.sizes), options.simulated)
    with open(options.file, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
