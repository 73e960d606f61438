"""Draws every figure of a record.

    python3 plots/all.py RECORD [--out DIR]

Writes NAME-step_time.png, NAME-timeline.png and NAME-memory.png beside RECORD (or into DIR) and
prints their paths. Needs matplotlib 3.6 or later.
"""

import sys

import cli
import memory
import step_time
import timeline

FIGURES = {module.NAME: module.draw for module in (step_time, timeline, memory)}

if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:], __doc__, FIGURES))
