"""The command line that all figure scripts share.

Exit codes are those of fsdp-tune: 0 drawn, 5 the folder cannot be written, 64 bad usage or a file
that is no record.
"""

import argparse
import sys
from pathlib import Path

import style
from load import RecordError, load

OK = 0
ENVIRONMENT = 5
USAGE = 64


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"{self.prog}: {message}; try --help", file=sys.stderr)
        sys.exit(USAGE)


def main(arguments, description, figures):
    """Draws `figures` (name -> draw(record)) and prints the path of each PNG. The exit code."""
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", metavar="RECORD", help="a run record, results/runs/*.json")
    parser.add_argument("--out", metavar="DIR", help="where the PNGs go (default: beside RECORD)")
    options = parser.parse_args(arguments)
    try:
        record = load(options.record)
    except RecordError as error:
        print(error, file=sys.stderr)
        return USAGE
    folder = Path(options.out) if options.out else record.path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in figures.items():
            path = folder / f"{record.path.stem}-{name}.png"
            style.save(draw(record), path)
            print(path)
    except OSError as error:
        print(f"{folder}: cannot be written: {error.strerror}; name another folder with --out",
              file=sys.stderr)
        return ENVIRONMENT
    return OK
