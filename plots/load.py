"""Reads a run record (results/README.md) into what the figures need.

    record = load("results/runs/tune-1.json")

A file that is no record of this version raises RecordError with one line: what, where, and what to
do.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

VERSION = 1
MEASURED = "measured"


class RecordError(Exception):
    """The file is not a record these scripts can draw."""


@dataclass(frozen=True)
class Interval:
    """A median with its 95 % interval; the bounds are None below six samples."""

    n: int
    median_ms: float
    low_ms: Optional[float]
    high_ms: Optional[float]


@dataclass(frozen=True)
class Candidate:
    number: int  # place in the record's list, from 1: what a figure prints
    policy: str
    unit_blocks: int  # 0: the units do not all hold the same number of blocks
    forward_prefetch: int
    backward_prefetch: int
    reshard: str
    outcome: str
    units: int
    memory_bytes: int
    predicted_ms: Optional[float]
    measured: Optional[Interval]

    @property
    def step_ms(self):
        """The step time to draw: the one that was run before the one that was computed."""
        return self.measured.median_ms if self.measured else self.predicted_ms


@dataclass(frozen=True)
class Span:
    stream: str
    operation: str
    unit: str
    phase: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class Record:
    path: Path
    command: str
    backend: str
    provenance: str
    verdict: str
    model: str
    scaling: Optional[str]
    parameters: int
    ranks: int
    memory_limit_bytes: Optional[int]
    candidates: List[Candidate]
    default: Optional[Candidate]
    winner: Optional[Candidate]
    timeline: List[Span]
    predicted_timeline: List[Span]

    @property
    def is_measured(self):
        return self.provenance == MEASURED


class Node:
    """A JSON value that knows its place, so that a missing key is named in full."""

    def __init__(self, value, file, place=""):
        self.value = value
        self.file = file
        self.place = place

    def fail(self, reason):
        raise RecordError(f"{self.file}: {self.place or '(top)'}: {reason}")

    def __getitem__(self, key):
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        place = f"{self.place}.{key}" if self.place else key
        if key not in self.value:
            raise RecordError(f"{self.file}: {place}: missing; the file is damaged or was not "
                              "written by fsdp-tune (keys: results/README.md)")
        return Node(self.value[key], self.file, place)

    def items(self):
        if not isinstance(self.value, list):
            self.fail("must be a list")
        return [Node(value, self.file, f"{self.place}[{i}]") for i, value in enumerate(self.value)]

    def text(self):
        if not isinstance(self.value, str):
            self.fail("must be text")
        return self.value

    def number(self):
        is_number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not is_number or not math.isfinite(self.value):
            self.fail("must be a number")
        return self.value

    def integer(self):
        if self.number() != int(self.value):
            self.fail("must be a whole number")
        return int(self.value)

    def milliseconds(self):
        return self.number() / 1e6

    def optional(self, read):
        """None for null, else what `read` makes of the value."""
        return None if self.value is None else read(self)


def load(path):
    """The record at `path`. Raises RecordError."""
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path}: is not a JSON document: {error}") from error
    top = Node(document, path)
    _check_version(top)
    candidates = [_candidate(node, i) for i, node in enumerate(top["candidates"].items(), 1)]
    return Record(
        path=path,
        command=top["command"].text(),
        backend=top["backend"].text(),
        provenance=top["provenance"].text(),
        verdict=top["verdict"].text(),
        model=top["model"]["name"].text(),
        scaling=top["model"]["scaling"].optional(Node.text),
        parameters=top["model"]["parameters"].integer(),
        ranks=top["mesh"]["replicate"].integer() * top["mesh"]["shard"].integer(),
        memory_limit_bytes=top["memory_limit_bytes"].optional(Node.integer),
        candidates=candidates,
        default=_chosen(top["default_index"], candidates),
        winner=_chosen(top["winner_index"], candidates),
        timeline=_spans(top["winner_timeline"]),
        predicted_timeline=_spans(top["winner_predicted_timeline"]),
    )


def _check_version(top):
    if not isinstance(top.value, dict) or "fsdp_tune_record" not in top.value:
        top.fail("is no run record: the key 'fsdp_tune_record' is missing")
    version = top["fsdp_tune_record"]
    if version.value != VERSION or isinstance(version.value, bool):
        version.fail(f"version {version.value!r} is not {VERSION}, the one these scripts read; "
                     "use the plots/ folder of the release that wrote the record")


def _candidate(node, number):
    return Candidate(
        number=number,
        policy=node["policy"].text(),
        unit_blocks=node["unit_blocks"].integer(),
        forward_prefetch=node["forward_prefetch"].integer(),
        backward_prefetch=node["backward_prefetch"].integer(),
        reshard=node["reshard_after_forward"].text(),
        outcome=node["outcome"].text(),
        units=node["units"].integer(),
        memory_bytes=node["memory"]["total_bytes"].integer(),
        predicted_ms=node["predicted_step_ns"].optional(Node.milliseconds),
        measured=node["measurement"].optional(_interval),
    )


def _interval(measurement):
    """None when the run kept no usable sample: null stands for a number that does not exist."""
    summary = measurement["summary"]
    median = summary["median_ns"].optional(Node.milliseconds)
    if median is None or summary["n"].integer() == 0:
        return None
    return Interval(
        n=summary["n"].integer(),
        median_ms=median,
        low_ms=summary["low_ns"].optional(Node.milliseconds),
        high_ms=summary["high_ns"].optional(Node.milliseconds),
    )


def _chosen(node, candidates):
    index = node.optional(Node.integer)
    if index is None:
        return None
    if not 0 <= index < len(candidates):
        node.fail(f"names candidate {index}, but there are {len(candidates)}")
    return candidates[index]


def _spans(node):
    return [
        Span(
            stream=row["stream"].text(),
            operation=row["operation"].text(),
            unit=row["unit"].text(),
            phase=row["phase"].text(),
            start_ms=row["start_ns"].milliseconds(),
            end_ms=row["end_ns"].milliseconds(),
        )
        for row in node.items()
    ]
