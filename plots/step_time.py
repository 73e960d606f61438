"""Step time by unit size: predictions hollow, measurements filled with their 95 % interval.

    python3 plots/step_time.py RECORD [--out DIR]

One panel a setting of reshard_after_forward, one line a pair of prefetch depths. The default and
the winner are named.
"""

import sys

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

import cli
import style

NAME = "step_time"
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", ":", "-.")
SPREAD = 0.62  # of the distance between two unit sizes, shared by the lines of a panel


def draw(record):
    timed = [candidate for candidate in record.candidates if candidate.step_ms is not None]
    settings = sorted({candidate.reshard for candidate in timed}, key=_reshard_order)
    made = style.figure(record, "Step time by unit size", 4.6 + 4.4 * max(1, len(settings)), 5.2)
    if not timed:
        style.nothing_to_draw(made, "no candidate has a step time")
        return made
    panels = _panels(made, len(settings))
    sizes = sorted({candidate.unit_blocks for candidate in timed}, key=lambda size: size or 10**9)
    depths = sorted({_depths(candidate) for candidate in timed})
    looks = _looks(depths)
    for axes, setting in zip(panels, settings):
        chosen = [candidate for candidate in timed if candidate.reshard == setting]
        for depth in depths:
            line = [candidate for candidate in chosen if _depths(candidate) == depth]
            _draw_line(axes, line, sizes, looks[depth])
        axes.set_title(f"parameters {style.reshard_text(setting)}", loc="left")
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.set_xticks(range(len(sizes)), [str(size) if size else "not uniform" for size in sizes])
        axes.set_xlabel("blocks a unit")
        axes.grid(axis="x", visible=False)
        for edge in range(1, len(sizes)):
            axes.axvline(edge - 0.5, color=style.GRID, lw=0.7)
    panels[0].set_ylabel("step time (ms)")
    panels[0].yaxis.set_major_locator(MaxNLocator(nbins=8))
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high + 0.10 * (high - low))
    for axes, setting in zip(panels, settings):
        _name_the_chosen(axes, record, setting, sizes, looks)
    _legend(made, record, looks)
    return made


def _depths(candidate):
    return candidate.forward_prefetch, candidate.backward_prefetch


def _reshard_order(text):
    """What PyTorch does by default stands left."""
    return (text != "reshard", text)


def _panels(made, count):
    bottom, top = style.axes_area(made)
    width, height = made.get_size_inches()
    grid = made.add_gridspec(1, count, left=0.85 / width, right=1 - 2.75 / width,
                             bottom=bottom + 0.62 / height, top=top - 0.28 / height, wspace=0.06)
    first = made.add_subplot(grid[0, 0])
    rest = [made.add_subplot(grid[0, i], sharey=first) for i in range(1, count)]
    for axes in rest:
        axes.tick_params(labelleft=False)
    return [first] + rest


def _looks(depths):
    """Colour and marker tell the forward depth, the dash the backward depth."""
    forward = sorted({depth[0] for depth in depths})
    backward = sorted({depth[1] for depth in depths})
    looks = {}
    for place, depth in enumerate(depths):
        offset = 0 if len(depths) == 1 else place / (len(depths) - 1) - 0.5
        row = forward.index(depth[0])
        looks[depth] = {
            "color": style.SERIES[row % len(style.SERIES)],
            "marker": MARKERS[row % len(MARKERS)],
            "linestyle": DASHES[backward.index(depth[1]) % len(DASHES)],
            "offset": SPREAD * offset,
        }
    return looks


def _place(candidate, sizes, look):
    return sizes.index(candidate.unit_blocks) + look["offset"]


def _draw_line(axes, line, sizes, look):
    predicted = sorted((_place(candidate, sizes, look), candidate.predicted_ms)
                       for candidate in line if candidate.predicted_ms is not None)
    if predicted:
        axes.plot(*zip(*predicted), color=look["color"], linestyle=look["linestyle"], lw=1,
                  alpha=0.75, marker=look["marker"], ms=6, mfc="white", mew=1.2, zorder=2)
    for candidate in line:
        if candidate.measured is None:
            continue
        interval = candidate.measured
        if candidate.predicted_ms is not None:
            x = _place(candidate, sizes, look)
            axes.plot([x, x], [candidate.predicted_ms, interval.median_ms], color=style.MUTED,
                      lw=0.9, ls=(0, (1, 2)), zorder=1)
        error = None
        if interval.low_ms is not None and interval.high_ms is not None:
            error = [[interval.median_ms - interval.low_ms],
                     [interval.high_ms - interval.median_ms]]
        axes.errorbar(_place(candidate, sizes, look), interval.median_ms, yerr=error,
                      color=look["color"], marker=look["marker"], ms=7.5, mec=style.INK, mew=0.8,
                      capsize=4, elinewidth=1.6, ecolor=style.INK, zorder=4)


def _name_the_chosen(axes, record, setting, sizes, looks):
    """A ring and a word; one candidate may be both."""
    names = {}
    for word, candidate in (("default", record.default), ("winner", record.winner)):
        if candidate and candidate.reshard == setting and candidate.step_ms is not None:
            names.setdefault(candidate.number, (candidate, []))[1].append(word)
    for candidate, words in names.values():
        x, y = _place(candidate, sizes, looks[_depths(candidate)]), candidate.step_ms
        axes.plot(x, y, "o", ms=15, mfc="none", mec=style.INK, mew=1.4, zorder=5)
        high = candidate.measured and candidate.measured.high_ms
        text = axes.annotate(" and ".join(words), (x, high or y), xytext=(0, 4 if high else 10),
                             textcoords="offset points", ha="center", va="bottom", weight="bold",
                             zorder=3, bbox={"facecolor": "white", "edgecolor": "none",
                                             "alpha": 0.7, "pad": 0.8})
        _keep_inside(axes, text)


def _keep_inside(axes, text):
    """Shifts a word that would stand across the edge of its panel."""
    renderer = axes.figure.canvas.get_renderer()
    word, frame = text.get_window_extent(renderer), axes.get_window_extent(renderer)
    shift = max(frame.x0 + 4 - word.x0, 0) + min(frame.x1 - 4 - word.x1, 0)
    text.set_position((shift * 72 / style.DPI, text.get_position()[1]))


def _legend(made, record, looks):
    handles = [Line2D([], [], color=look["color"], linestyle=look["linestyle"], lw=1.2,
                      marker=look["marker"], ms=6, mfc="white", mew=1.2,
                      label=f"forward {forward}, backward {backward}")
               for (forward, backward), look in looks.items()]
    width = made.get_figwidth()
    top = style.axes_area(made)[1] - 0.28 / made.get_figheight()
    first = made.legend(handles=handles, title="prefetch depth", loc="upper left", borderaxespad=0,
                        alignment="left", bbox_to_anchor=(1 - 2.6 / width, top), handlelength=3.2)
    first.get_title().set_weight("bold")
    run = style.run_word(record)
    kinds = []
    if any(candidate.predicted_ms is not None for candidate in record.candidates):
        kinds.append(Line2D([], [], color=style.MUTED, lw=1, marker="o", mfc="white", ms=6,
                            label="predicted"))
    if any(candidate.measured for candidate in record.candidates):
        kinds.append(Line2D([], [], color=style.INK, lw=0, marker="o", mfc=style.MUTED, ms=7.5,
                            label=f"{run}: median and\n95 % interval"))
    if any(some.measured and some.predicted_ms is not None for some in record.candidates):
        kinds.append(Line2D([], [], color=style.MUTED, lw=0.9, ls=(0, (1, 2)),
                            label=f"from predicted to\n{run}"))
    made.canvas.draw()
    below = first.get_window_extent().transformed(made.transFigure.inverted()).y0
    made.legend(handles=kinds, loc="upper left", borderaxespad=0, handlelength=3.2,
                bbox_to_anchor=(1 - 2.6 / width, below - 0.15 / made.get_figheight()))


if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:], __doc__, {NAME: draw}))
