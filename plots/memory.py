"""Memory against step time: what speed costs, and what the limit forbids.

    python3 plots/memory.py RECORD [--out DIR]

Every candidate has a number, explained in the table; filled points were run, hollow ones only
predicted. The Pareto front holds the candidates that nobody beats in both.
"""

import sys

from matplotlib.lines import Line2D

import cli
import style

NAME = "memory"
TABLE_ROWS = 56
ROW_IN = 0.163
TABLE_FONT = 7.6


def draw(record):
    timed = [candidate for candidate in record.candidates if candidate.step_ms is not None]
    front = pareto_front(record, timed)
    listed = _listed(record, timed, front)
    made = style.figure(record, "Memory against step time", 15,
                        max(6.2, 0.9 + ROW_IN * (len(listed) + 2)))
    if not timed:
        style.nothing_to_draw(made, "no candidate has a step time")
        return made
    unit, unit_bytes = style.memory_unit(max(candidate.memory_bytes for candidate in timed))
    bottom, top = style.axes_area(made)
    width, height = made.get_size_inches()
    plot_top = top - 0.62 / height
    axes = made.add_axes([0.9 / width, bottom + 0.6 / height, 8.3 / width,
                          plot_top - bottom - 0.6 / height])
    _draw_points(axes, timed, unit_bytes)
    axes.margins(0.09)
    axes.set_xlabel("step time (ms)")
    axes.set_ylabel(f"memory a rank: arenas and optimizer ({unit})")
    axes.autoscale_view()
    limit = _draw_limit(axes, record, unit, unit_bytes)
    _draw_front(axes, front, unit_bytes)
    _number_points(axes, record, listed, unit_bytes)
    _legend(made, axes, record, timed, front, limit)
    _table(made, record, listed, len(timed), {c.number for c in front}, unit, unit_bytes)
    return made


def pareto_front(record, timed):
    """Candidates within the limit that no other beats in both. Measured times are only compared
    with measured ones: where there are any, predictions stay out."""
    run = [candidate for candidate in timed if candidate.measured]
    limit = record.memory_limit_bytes
    front = []
    for candidate in sorted(run or timed, key=lambda some: (some.step_ms, some.memory_bytes)):
        if limit is not None and candidate.memory_bytes > limit:
            continue
        if not front or candidate.memory_bytes < front[-1].memory_bytes:
            front.append(candidate)
    return front


def _listed(record, timed, front):
    """All candidates where the table has room for them, else those that decide something."""
    if len(timed) <= TABLE_ROWS:
        return timed
    kept = {candidate.number for candidate in front}
    kept |= {some.number for some in (record.default, record.winner) if some}
    listed = [some for some in timed if some.measured or some.number in kept]
    return listed[:TABLE_ROWS]


def _colour(candidate):
    """Kept whole, freed, or something between: kept in slices."""
    return {"reshard": style.BLUE, "keep": style.VERMILLION}.get(candidate.reshard, style.PURPLE)


def _draw_points(axes, timed, unit_bytes):
    for candidate in timed:
        x, y = candidate.step_ms, candidate.memory_bytes / unit_bytes
        if candidate.measured is None:
            axes.plot(x, y, "o", ms=6, mfc="white", mec=_colour(candidate), mew=1.2, zorder=3)
            continue
        interval = candidate.measured
        if interval.low_ms is not None and interval.high_ms is not None:
            axes.plot([interval.low_ms, interval.high_ms], [y, y], color=style.INK, lw=1.3,
                      zorder=4, solid_capstyle="butt")
        axes.plot(x, y, "o", ms=8, mfc=_colour(candidate), mec=style.INK, mew=0.8, zorder=5)


def _draw_limit(axes, record, unit, unit_bytes):
    """Its handle for the legend. A limit far above the points would only flatten the picture, so
    it is drawn where it is near and named in any case."""
    if record.memory_limit_bytes is None:
        return None
    limit = record.memory_limit_bytes / unit_bytes
    low, high = axes.get_ylim()
    near = limit <= high + 0.6 * (high - low)
    if near:
        axes.set_ylim(min(low, limit - 0.05 * (high - low)), max(high, limit + 0.08 * (high - low)))
        axes.axhline(limit, color=style.INK, lw=1.4, ls=(0, (6, 3)), zorder=2)
        axes.axhspan(limit, axes.get_ylim()[1], color="#F3E3DC", zorder=0, lw=0)
    where = "" if near else ", above this picture"
    return Line2D([], [], color=style.INK, lw=1.4, ls=(0, (4, 2)),
                  label=f"memory limit {limit:.4g} {unit}{where}")


def _draw_front(axes, front, unit_bytes):
    """A staircase: between two points of the front nothing better is known."""
    if not front:
        return
    high, right = axes.get_ylim()[1], axes.get_xlim()[1]
    xs = [front[0].step_ms] + [candidate.step_ms for candidate in front] + [right]
    ys = [high] + [candidate.memory_bytes / unit_bytes for candidate in front]
    axes.step(xs, ys + [ys[-1]], where="post", color=style.GREEN, lw=1.8, alpha=0.9, zorder=2)
    axes.set_ylim(top=high)
    axes.set_xlim(right=right)


def _roles(record, candidate):
    chosen = (("default", record.default), ("winner", record.winner))
    return [word for word, some in chosen if some and some.number == candidate.number]


def _number_points(axes, record, listed, unit_bytes):
    """Numbers beside their points: the nearest free place, with a thin line when it is far."""
    made = axes.figure
    renderer = made.canvas.get_renderer()
    to_pixels = axes.transData.transform
    points = [to_pixels((some.step_ms, some.memory_bytes / unit_bytes)) for some in listed]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    frame = axes.get_window_extent(renderer)
    order = sorted(range(len(listed)), key=lambda i: (listed[i].measured is None, points[i][0]))
    for i in order:
        words = [str(listed[i].number)] + _roles(record, listed[i])
        text = axes.text(0, 0, " ".join(words), fontsize=8, ha="center", va="center",
                         zorder=2.6, weight="bold" if listed[i].measured else "normal",
                         bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75,
                               "pad": 0.6})
        size = text.get_window_extent(renderer)
        x, y, radius = _free_place(points[i], (size.width, size.height), taken, frame)
        taken.append((x - size.width / 2, y - size.height / 2, x + size.width / 2,
                      y + size.height / 2))
        text.set_position(axes.transData.inverted().transform((x, y)))
        if radius > 20:
            start = axes.transData.inverted().transform(points[i])
            axes.annotate("", start, xytext=text.get_position(), zorder=1,
                          arrowprops={"arrowstyle": "-", "color": style.MUTED, "lw": 0.5,
                                      "shrinkA": 4, "shrinkB": 3})


DIRECTIONS = ((0, 1), (1, 0), (0, -1), (-1, 0), (0.75, 0.75), (0.75, -0.75), (-0.75, -0.75),
              (-0.75, 0.75), (0.4, 0.92), (-0.4, 0.92), (0.4, -0.92), (-0.4, -0.92))


def _free_place(point, size, taken, frame):
    radius = 14
    while radius < 160:
        for dx, dy in DIRECTIONS:
            x, y = point[0] + dx * radius, point[1] + dy * radius
            box = (x - size[0] / 2 - 1, y - size[1] / 2, x + size[0] / 2 + 1, y + size[1] / 2)
            inside = frame.x0 < box[0] and box[2] < frame.x1 and frame.y0 < box[1] and \
                box[3] < frame.y1
            if inside and not any(_overlap(box, other) for other in taken):
                return x, y, radius
        radius += 6
    return point[0], point[1] + 14, 14


def _overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _legend(made, axes, record, timed, front, limit):
    run = style.run_word(record)
    settings = sorted({(some.reshard != "reshard", some.reshard, _colour(some)) for some in timed})
    handles = [Line2D([], [], lw=0, marker="o", ms=7, color=colour,
                      label=style.reshard_text(setting)) for _, setting, colour in settings]
    has_run = any(candidate.measured for candidate in timed)
    if has_run:
        handles.append(Line2D([], [], lw=0, marker="o", ms=8, mfc=style.MUTED, mec=style.INK,
                              label=run))
    handles.append(Line2D([], [], lw=0, marker="o", ms=6, mfc="white", mec=style.MUTED, mew=1.2,
                          label="predicted only"))
    if front:
        word = run if has_run else "predicted"
        handles.append(Line2D([], [], color=style.GREEN, lw=1.8, label=f"Pareto front, {word}"))
    handles += [limit] if limit else []
    box = axes.get_position()
    made.legend(handles=handles, loc="lower left", ncol=3, borderaxespad=0,
                handletextpad=0.5, columnspacing=1.3, fontsize=8.5,
                bbox_to_anchor=(box.x0, box.y1 + 0.1 / made.get_figheight()))


def _table(made, record, listed, timed_count, front, unit, unit_bytes):
    width, height = made.get_size_inches()
    left = 9.45 / width
    top = style.axes_area(made)[1]
    columns = (0.28, 0.95, 1.6, 1.78)  # inches from `left`: number, step, memory end; policy begins

    def row(place, cells, **look):
        y = top - (0.1 + ROW_IN * place) / height
        for offset, cell, side in zip(columns, cells, ("right", "right", "right", "left")):
            made.text(left + offset / width, y, cell, ha=side, va="top", fontsize=TABLE_FONT,
                      **look)

    row(0, ("#", "ms", unit, "policy (bold: " + style.run_word(record) + ")"), color=style.MUTED)
    for place, candidate in enumerate(listed, 1):
        words = _roles(record, candidate) + (["front"] if candidate.number in front else [])
        policy = (f"{', '.join(words)}: " if words else "") + candidate.policy
        row(place, (str(candidate.number), f"{candidate.step_ms:.4g}",
                    f"{candidate.memory_bytes / unit_bytes:.3f}" if unit == "GiB" else
                    f"{candidate.memory_bytes / unit_bytes:.0f}",
                    style.fitted(made, policy, width - 9.45 - columns[3] - 0.1,
                                 fontsize=TABLE_FONT, weight="bold")),
            weight="bold" if candidate.measured else "normal")
    left_out = len(record.candidates) - len(listed)
    if left_out:
        without = len(record.candidates) - timed_count
        words = f"{left_out} more" + (f", {without} of them without a step time" if without else "")
        row(len(listed) + 1, ("", "", "", words), color=style.MUTED)


if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:], __doc__, {NAME: draw}))
