"""The winner's step by stream: what ran when, measured above predicted.

    python3 plots/timeline.py RECORD [--out DIR]

Bars are coloured by operation; the background tells forward from backward; a unit's name stands
above its bars where it fits.
"""

import re
import sys
from itertools import groupby

from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

import cli
import style

NAME = "timeline"
STREAMS = ("compute", "all_gather_copy_in", "all_gather", "reduce_scatter", "all_reduce")
OPERATIONS = ("compute", "cast", "copy_in", "all_gather", "copy_out", "chunk_cat",
              "reduce_scatter", "all_reduce")
PHASE_SHADES = {"forward": "#EEF3F8", "backward": "#F8F1E7"}
BAR = 0.58  # height of a bar in its lane of height 1; the rest is for names
FONT = 7.5
GAP = 4  # pixels between two names
MANY_UNITS = 24


def draw(record):
    panels = [(style.run_word(record), record.timeline), ("predicted", record.predicted_timeline)]
    panels = [(word, spans) for word, spans in panels if spans]
    spans = [span for _, some in panels for span in some]
    streams = [name for name in STREAMS if any(span.stream == name for span in spans)]
    units = {span.unit for span in spans}
    height = 1.1 + len(panels) * (0.62 * len(streams) + 0.6)
    made = style.figure(record, _title(record), 18 if len(units) > MANY_UNITS else 14,
                        max(2.0, height))
    if not spans:
        style.nothing_to_draw(made, "the record holds no timeline of the winner")
        return made
    grid = _grid(made, len(panels))
    end = max(span.end_ms for span in spans)
    names = short_names(units)
    first = None
    for row, (word, some) in enumerate(panels):
        axes = made.add_subplot(grid[row, 0], sharex=first)
        first = first or axes
        axes.set_xlim(0, end * 1.005)
        _draw_panel(axes, some, streams, names)
        last = max(span.end_ms for span in some)
        axes.set_title(f"{word}: {last:.4g} ms", loc="left", weight="bold",
                       pad=17)
        axes.tick_params(labelbottom=row == len(panels) - 1)
    axes.set_xlabel("time since the step began (ms)" +
                    (", rank 0" if record.is_measured and record.timeline else ""))
    _legend(made, spans)
    return made


def _title(record):
    title = "Timeline of one step"
    return f"{title}: {record.winner.policy}" if record.winner else title


def _grid(made, rows):
    bottom, top = style.axes_area(made)
    width, height = made.get_size_inches()
    return made.add_gridspec(rows, 1, left=1.75 / width, right=1 - 0.25 / width,
                             bottom=bottom + 0.6 / height, top=top - 0.80 / height,
                             hspace=0.24)


def _draw_panel(axes, spans, streams, names):
    lanes = {name: len(streams) - 1 - i for i, name in enumerate(streams)}
    for phase, start, end in phases(spans):
        axes.axvspan(start, end, color=PHASE_SHADES.get(phase, "white"), zorder=0, lw=0)
        axes.text((start + end) / 2, len(streams) + 0.02, phase, ha="center", va="bottom",
                  fontsize=8.5, color=style.MUTED)
    for operation in OPERATIONS:
        boxes = [_box(span, lanes) for span in spans if span.operation == operation]
        if boxes:
            axes.add_collection(PolyCollection(
                boxes, facecolor=style.OPERATION_COLOURS[operation], edgecolor="white",
                linewidth=_edge_width(axes, boxes), zorder=2))
    axes.set_ylim(0, len(streams))
    axes.set_yticks([lane + BAR / 2 + 0.06 for lane in lanes.values()], list(lanes))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for lane in range(1, len(streams)):
        axes.axhline(lane, color=style.GRID, lw=0.7, zorder=1)
    _name_units(axes, spans, lanes, names)


def _box(span, lanes):
    low = lanes[span.stream] + 0.06
    return [(span.start_ms, low), (span.end_ms, low), (span.end_ms, low + BAR),
            (span.start_ms, low + BAR)]


def _pixels_per_ms(axes):
    left, right = axes.get_xlim()
    width = axes.get_position().width * axes.figure.get_figwidth() * style.DPI
    return width / (right - left)


def _edge_width(axes, boxes):
    """White edges separate neighbours, but would swallow bars of a few pixels."""
    widths = sorted(box[1][0] - box[0][0] for box in boxes)
    return 0.5 if widths[len(widths) // 2] * _pixels_per_ms(axes) > 6 else 0


def phases(spans):
    """(phase, start, end) of the stretches of the compute stream, without gaps between them."""
    on_compute = sorted((span for span in spans if span.stream == "compute"),
                        key=lambda span: span.start_ms)
    stretches = []
    for phase, run in groupby(on_compute or spans, key=lambda span: span.phase):
        stretches.append((phase, next(run).start_ms))
    if not stretches:
        return []
    starts = [0.0] + [start for _, start in stretches[1:]]
    ends = starts[1:] + [max(span.end_ms for span in spans)]
    return [(phase, start, end) for (phase, _), start, end in zip(stretches, starts, ends)]


def _name_units(axes, spans, lanes, names):
    """A name for each uninterrupted run of a unit on a stream, or for every k-th run where they
    stand too close."""
    renderer = axes.figure.canvas.get_renderer()
    scale = _pixels_per_ms(axes)
    widths = {}
    for name in set(names.values()):
        text = axes.text(0, 0, name, fontsize=FONT)
        widths[name] = text.get_window_extent(renderer).width
        text.remove()
    for stream, lane in lanes.items():
        row = sorted((span for span in spans if span.stream == stream),
                     key=lambda span: (span.start_ms, span.end_ms))
        taken = 0.0
        for _, stretch in groupby(row, key=lambda span: span.phase):
            wanted = []
            for unit, run in groupby(stretch, key=lambda span: span.unit):
                run = list(run)
                middle = (run[0].start_ms + run[-1].end_ms) / 2 * scale
                half = widths[names[unit]] / 2
                wanted.append((max(middle, half + GAP), half, names[unit]))
            for middle, half, name in spread(wanted, taken):
                axes.text(middle / scale, lane + BAR + 0.09, name, ha="center", va="bottom",
                          fontsize=FONT, color=style.INK, zorder=3)
                taken = middle + half


def spread(wanted, taken=0.0):
    """Of (middle, half width, name) in order, right of `taken`, the most that stand apart in a
    regular rhythm: every k-th with the smallest k for which hardly any must be left out."""
    for k in range(1, len(wanted) + 1):
        picked = wanted[::k]
        placed = []
        edge = taken
        for middle, half, name in picked:
            if middle - half >= edge + GAP:
                placed.append((middle, half, name))
                edge = middle + half
        if len(placed) >= 0.85 * len(picked):
            return placed
    return []


def short_names(units):
    """Names that fit: block numbers where a unit is made of numbered modules, "4-7" for a run of
    them, else the last part of the path."""
    return {unit: _short_name(unit) for unit in units}


def _short_name(unit):
    parts = []
    for path in unit.split("+"):
        number = re.search(r"\.(\d+)$", path)
        parts.append(int(number.group(1)) if number else path.rsplit(".", 1)[-1])
    shown = []
    for part in parts:
        if shown and isinstance(part, int) and isinstance(shown[-1], list) and \
                part == shown[-1][-1] + 1:
            shown[-1] = [shown[-1][0], part]
        else:
            shown.append([part, part] if isinstance(part, int) else part)
    return "+".join(part if isinstance(part, str) else
                    str(part[0]) if part[0] == part[1] else f"{part[0]}-{part[1]}"
                    for part in shown)


def _legend(made, spans):
    used = {span.operation for span in spans}
    handles = [Patch(facecolor=style.OPERATION_COLOURS[name], label=name)
               for name in OPERATIONS if name in used]
    width = made.get_figwidth()
    made.legend(handles=handles, loc="upper left", ncol=len(handles), borderaxespad=0,
                handlelength=1.3, columnspacing=1.6,
                bbox_to_anchor=(0.18 / width, style.axes_area(made)[1]))


if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:], __doc__, {NAME: draw}))
