#!/usr/bin/env python3
"""Real transformers models against what is read from their config.json.

configs/models/dump_module_tree.py makes each model and writes its tree; the plan of that tree and the plan of the
config alone must be the same: units, layouts, collectives, order, memory, totals. Exit status 77 (skipped) where the
Python that runs it cannot import torch and transformers.

usage: module_tree_test.py --binary FSDP_TUNE --source ROOT
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
MODELS = ("hf-gpt2", "hf-llama", "hf-llama-tied", "hf-mixtral", "hf-qwen2", "hf-t5", "hf-vit")
POLICIES = {
    "fsdp2, a unit a block": "{profile: fsdp2, wrap: {by: block}, param_dtype: bf16, reduce_dtype: f32}",
    "fsdp1, by size": "{profile: fsdp1, sharding: hybrid_shard, wrap: {size: {min_params: 1e6}}, param_dtype: bf16}",
    "fsdp2, one unit": "{profile: fsdp2, wrap: {by: none}}",
}
PARTS = ("units", "collectives", "memory", "order", "flop_a_micro_batch", "memory_per_rank")


def missing_package():
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            return package
    return None


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


def plan(binary, folder, model, policy):
    path = os.path.join(folder, "run.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"model: {model}\nmesh: {{replicate: 2, shard: 6}}\nbatch: {{sequence: 16, micro_batch: 1}}\n"
                   f"policy: {policy}\n")
    done = run([binary, "plan", "--json", path])
    if done.returncode:
        sys.exit(f"plan of {model}, {policy}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def first_difference(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            if (found := first_difference(a.get(key), b.get(key), f"{path}/{key}")) is not None:
                return found
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            if (found := first_difference(x, y, f"{path}/{i}")) is not None:
                return found
    elif a != b:
        return f"{path}: {str(a)[:80]} in the model, {str(b)[:80]} from its config"
    return None


def compare(options, name):
    config = os.path.join(options.source, "tests/golden/pytorch", name, "config.json")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree.json")
        dumped = run([sys.executable, os.path.join(options.source, "configs/models/dump_module_tree.py"),
                      "--hf", config, "--output", tree])
        if dumped.returncode:
            sys.exit(f"{name}: {dumped.stderr}")
        for title, policy in POLICIES.items():
            made = plan(options.binary, folder, f"{{tree: {tree}}}", policy)
            read = plan(options.binary, folder, f"{{hf: {config}}}", policy)
            found = first_difference({part: made[part] for part in PARTS}, {part: read[part] for part in PARTS})
            print(f"{name}, {title}: {found or f'the same, ' + str(len(made['units'])) + ' units'}")
            failures += found is not None
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--source", required=True)
    options = parser.parse_args()
    if (package := missing_package()) is not None:
        print(f"skipped: {sys.executable} has no {package}; set FSDP_TUNE_FRAMEWORKS_PYTHON to a Python with torch and "
              "transformers")
        sys.exit(SKIPPED)
    sys.exit(1 if sum(compare(options, name) for name in MODELS) else 0)


if __name__ == "__main__":
    main()
