#!/usr/bin/env python3
"""Holds the tree to docs/ARCHITECTURE.md: who may include whom, which library shows up where, how
long a file may be. Usage: check_architecture.py ROOT. Prints one line a violation, exit code 1."""

import pathlib
import re
import sys

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "Makefile", "README.md", "CHANGELOG.md", "LICENSE",
    "bench", "cmake", "configs", "core", "docs", "kernels", "plots", "results", "tests", "tuner",
}
# Never part of the tree: what .gitignore names.
IGNORED = re.compile(r"^(build.*|__pycache__|compile_commands\.json|CMakeUserPresets\.json)$")

CORE = ["core/units", "core/model", "core/config", "core/plan", "core/schedule", "core/advice",
        "core/record", "core/sim"]
BENCH = ["bench", "bench/measure", "bench/calibrate"]
BACKENDS = ["bench/backend/sim", "bench/backend/mpi", "bench/backend/nccl"]
TUNER = ["tuner"]
EVERYTHING = CORE + BENCH + BACKENDS + TUNER + ["kernels", "tuner/app", "bench/micro"]

# Folder -> folders it may include beside itself. The longest matching folder counts.
USES = {
    "core/units": [],
    "core/model": ["core/units"],
    "core/config": ["core/units", "core/model"],
    "core/plan": ["core/units", "core/model"],
    "core/schedule": CORE[:4],
    "core/advice": CORE[:5],
    "core/record": CORE[:6],
    "core/sim": CORE[:7],
    "kernels": ["core/units"],
    "bench": CORE,
    "bench/measure": CORE + ["bench"],
    "bench/calibrate": CORE + ["bench", "bench/measure"],
    "bench/backend/sim": CORE + ["bench", "kernels"],
    "bench/backend/mpi": CORE + ["bench", "kernels"],
    "bench/backend/nccl": CORE + ["bench", "kernels"],
    "bench/micro": EVERYTHING,
    "tuner": CORE + BENCH,
    "tuner/app": EVERYTHING,
}

# What an #include names -> folders that may include it. "*/app" stands for tuner/app and the like.
ANYWHERE_BUT_CORE = ["bench", "kernels", "tuner", "tests"]
FILES = ["core/config", "core/record"]
LIBRARIES = [
    (r"cuda|cublas|nvml|nvtx|cooperative_groups", ["kernels", "bench/backend/nccl"]),
    (r"nccl", ["bench/backend/nccl"]),
    (r"mpi\.h", ["bench/backend/mpi", "bench/backend/nccl", "tests/unit/bench/backend"]),
    (r"(oneapi/)?dnnl", ["bench/backend/mpi", "tests/unit/bench/backend"]),
    (r"yaml-cpp/", ["core/config"]),
    (r"CLI/", ["*/app"]),
    (r"nlohmann/", ["core/model", "core/config", "core/record", "bench/measure", "bench/calibrate",
                    "tuner", "tests"]),
    (r"spdlog/|iostream>", ANYWHERE_BUT_CORE),
    (r"(chrono|ctime|time\.h|thread|mutex|future)>", ANYWHERE_BUT_CORE),
    (r"(fstream|filesystem|cstdio|unistd\.h|fcntl\.h)>", FILES + ANYWHERE_BUT_CORE),
]

# A backend may be named where a program is put together and where backends are compared.
NAMES_A_BACKEND = ["tuner/app", "bench/micro", "bench/backend", "tests/conformance", "tests/perf",
                   "tests/unit/bench/backend"]

# An attribute that depends on the compiler cannot be had without one.
MACROS = {("kernels/clones.hpp", "FSDP_CLONES")}

SOURCE = {".cpp", ".hpp", ".cu", ".cuh"}
TEXT = SOURCE | {".py", ".txt", ".cmake", ".md", ".yaml", ".json", ".sh", ".svg"}
LINES, TEST_LINES = 400, 600
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+[">])')
PATHS = re.compile(r"(?<![\w.})])/(work|tmp|home|root|mnt|Users)/")
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX)\b")


def inside(folder, roots):
    """True when `folder` is one of `roots` or below one."""
    for root in roots:
        if root == "*/app":
            if folder.endswith("/app"):
                return True
        elif folder == root or folder.startswith(root + "/"):
            return True
    return False


def layer(folder):
    """The entry of USES that `folder` belongs to, or None (tests)."""
    matches = [name for name in USES if inside(folder, [name])]
    return max(matches, key=len) if matches else None


def includes(text):
    """(line number, quoted or angled, what is named with its closing mark)."""
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def check_top_level(root):
    for entry in sorted(root.iterdir()):
        name = entry.name
        if not name.startswith(".") and not IGNORED.match(name) and name not in TOP_LEVEL:
            yield f"{name}: the top level has a fixed set of names; put it into one of the folders"


def check_order(path, folder, text):
    mine = layer(folder)
    for number, quoted, named in includes(text):
        target = str(pathlib.PurePosixPath(named.rstrip('">')).parent)
        theirs = layer(target)
        if not quoted or theirs is None:
            continue
        if inside(target, BACKENDS) and not inside(folder, NAMES_A_BACKEND):
            yield f"{path}:{number}: only apps and backend tests name a backend ({target})"
        elif mine is not None and theirs != mine and theirs not in USES[mine]:
            yield f"{path}:{number}: {mine} may not use {theirs}"


def check_libraries(path, folder, text):
    for number, _, named in includes(text):
        for library, allowed in LIBRARIES:
            if re.match(library, named) and not inside(folder, allowed):
                yield f"{path}:{number}: {named.rstrip('>').rstrip(chr(34))} belongs to " + \
                    ", ".join(allowed)
        if named.startswith("yaml-cpp/") and path.suffix != ".cpp":
            yield f"{path}:{number}: yaml-cpp stays out of headers"


def check_source(path, folder, text):
    lines = text.splitlines()
    tests = inside(folder, ["tests"])
    if path.suffix == ".hpp":
        if "#pragma once" not in lines:
            yield f"{path}:1: header without #pragma once"
        if not text.startswith("//"):
            yield f"{path}:1: a header opens with what it is for"
    for number, line in enumerate(lines, 1):
        macro = re.match(r"\s*#\s*define\s+(\w*)", line)
        if macro and not tests and (path.as_posix(), macro.group(1)) not in MACROS:
            yield f"{path}:{number}: no macros"
        if not tests and LEFT_OVER.search(line):
            yield f"{path}:{number}: unfinished work belongs into an issue"


def check_listed(path, listings):
    """A source that no list names is not compiled, and nobody notices. Its folder's list names it,
    with or without its ending, or the list of another folder names it by path."""
    folder = path.parent
    near = next((listings[up] for up in [folder, *folder.parents] if up in listings), "")
    by_path = f"{folder.name}/{path.name}"
    if not re.search(rf"(?<![\w/]){re.escape(path.stem)}\b", near) and not any(
            by_path in text for text in listings.values()):
        yield f"{path}:1: no CMakeLists.txt names it, so it is never compiled"


def check_text(path, folder, text):
    tests = inside(folder, ["tests"])
    if path.suffix in SOURCE | {".py", ".cmake"} or path.name == "CMakeLists.txt":
        limit = TEST_LINES if tests else LINES
        if len(text.splitlines()) > limit:
            yield f"{path}:{limit}: longer than {limit} lines"
    if not tests:
        for number, line in enumerate(text.splitlines(), 1):
            if PATHS.search(line):
                yield f"{path}:{number}: names a path of one machine"


def files(root):
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        parts = relative.parts
        skipped = parts[0] == ".git" or parts[:2] == ("results", "runs")
        if path.is_file() and not skipped and not any(IGNORED.match(part) for part in parts):
            yield relative


def violations(root):
    root = pathlib.Path(root)
    yield from check_top_level(root)
    paths = list(files(root))
    listings = {path.parent: (root / path).read_text(encoding="utf-8") for path in paths
                if path.name == "CMakeLists.txt"}
    for path in paths:
        named = path.suffix in TEXT or path.name in {"Makefile", "run"}
        if not named:
            continue
        folder = path.parent.as_posix()
        text = (root / path).read_text(encoding="utf-8")
        yield from check_text(path, folder, text)
        if path.suffix in SOURCE:
            yield from check_order(path, folder, text)
            yield from check_libraries(path, folder, text)
            yield from check_source(path, folder, text)
        if path.suffix in {".cpp", ".cu"}:
            yield from check_listed(path, listings)


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    found = list(violations(arguments[1]))
    for line in found:
        print(line)
    print(f"{len(found)} violations", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
