#!/usr/bin/env python3
"""Seeds one error of each kind into a copy of a recorded case and expects check.py to name it."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def shard_too_small(expect):
    expect["units"][1]["shard_numel"] -= 1


def missing_collective(expect):
    del expect["collectives"][3]


def other_dtype(expect):
    expect["collectives"][-1]["dtype"] = "bf16"


def more_memory(expect):
    expect["memory"]["backward"]["total"] = int(expect["memory"]["backward"]["total"] * 1.05)


def missing_wait(expect):
    wait = next(i for i, line in enumerate(expect["order"])
                if line.startswith("b0 compute: wait reduce_scatter"))
    del expect["order"][wait]


def main():
    binary = sys.argv[1]
    for seed in (shard_too_small, missing_collective, other_dtype, more_memory, missing_wait):
        with tempfile.TemporaryDirectory() as folder:
            case = pathlib.Path(folder) / "case"
            shutil.copytree(HERE / "pytorch" / "llama-block", case)
            expect = json.loads((case / "expect.json").read_text())
            seed(expect)
            (case / "expect.json").write_text(json.dumps(expect))
            run = subprocess.run([sys.executable, HERE / "check.py", binary, case],
                                 capture_output=True, text=True, check=False)
            if run.returncode == 0 or "0 of 1" not in run.stdout:
                sys.exit(f"{seed.__name__} was not noticed:\n{run.stdout}{run.stderr}")
            print(f"{seed.__name__}: {run.stdout.splitlines()[0]}")


if __name__ == "__main__":
    main()
