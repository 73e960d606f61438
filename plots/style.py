"""One look for every figure: fonts, a palette that colour-blind readers can tell apart, and the
label that says where the numbers come from.

    figure, axes = style.figure(record, "Step time by unit size", width_in=11, height_in=6)
    style.save(figure, path)
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen before)

DPI = 130

# Okabe and Ito's palette: distinct for the common kinds of colour blindness and in print.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, YELLOW, BLACK)

INK = "#222222"
MUTED = "#666666"
GRID = "#DDDDDD"

OPERATION_COLOURS = {
    "compute": BLUE,
    "all_gather": ORANGE,
    "reduce_scatter": VERMILLION,
    "all_reduce": BLACK,
    "copy_in": SKY,
    "copy_out": GREEN,
    "chunk_cat": PURPLE,
    "cast": YELLOW,
}

PARAMETERS = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "savefig.facecolor": "white",
}

TITLE_IN = 0.66  # inches kept for the title and the verdict below it
FOOTER_IN = 0.42  # inches kept for the provenance label


def parameters_text(count):
    """124439808 -> "124M parameters"."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter} parameters"
    return f"{count} parameters"


def memory_unit(largest_bytes):
    """The unit, and its bytes, in which `largest_bytes` reads well."""
    return ("GiB", 2**30) if largest_bytes >= 2**30 else ("MiB", 2**20)


def provenance_label(record):
    """The line every figure carries: where its numbers come from and of what."""
    model = f"{record.model}, {parameters_text(record.parameters)}"
    if record.scaling:
        model += f", scaled: {record.scaling}"
    ranks = f"{record.ranks} rank" + ("" if record.ranks == 1 else "s")
    origin = "measured" if record.is_measured else "SIMULATED: not a measurement"
    return f"{origin}, backend {record.backend}, {ranks}, {model}"


RESHARD_TEXTS = {"reshard": "resharded after forward", "keep": "kept after forward"}


def reshard_text(setting):
    """What happens to a unit's parameters between forward and backward."""
    return RESHARD_TEXTS.get(setting, setting)


def run_word(record):
    """What to call a step that was run: only a measuring backend measures."""
    return "measured" if record.is_measured else "simulated"


def figure(record, title, width_in, height_in):
    """A figure with title, verdict and provenance label; `height_in` is left for the axes."""
    plt.rcParams.update(PARAMETERS)
    height = height_in + TITLE_IN + FOOTER_IN
    made = plt.figure(figsize=(width_in, height), dpi=DPI)
    margin = 0.18 / width_in
    head = {"fontsize": 14, "weight": "bold"}
    made.text(margin, 1 - 0.12 / height, fitted(made, title, width_in - 0.5, **head), ha="left",
              va="top", **head)
    made.text(margin, 1 - 0.40 / height, fitted(made, record.verdict, width_in - 0.5, fontsize=10),
              ha="left", va="top", fontsize=10, color=MUTED)
    label = fitted(made, provenance_label(record), width_in - 0.5, fontsize=9.5, weight="bold")
    made.text(margin, 0.13 / height, label, ha="left", va="bottom", fontsize=9.5,
              color=MUTED if record.is_measured else "white",
              weight="normal" if record.is_measured else "bold",
              bbox=None if record.is_measured else
              {"facecolor": VERMILLION, "edgecolor": "none", "boxstyle": "square,pad=0.35"})
    return made


def axes_area(made):
    """(bottom, top) of the area between title and label, as fractions of the figure."""
    height = made.get_figheight()
    return FOOTER_IN / height, 1 - TITLE_IN / height


def fitted(made, words, room_in, **font):
    """`words` on one line of `room_in` inches, with an ellipsis for what does not fit. Names of
    models, policies and files have any length."""
    text = made.text(0, 0, words, **font)
    renderer = made.canvas.get_renderer()
    while len(words) > 8 and text.get_window_extent(renderer).width > room_in * DPI:
        words = words[:-2].rstrip(" .,…") + "…"
        text.set_text(words)
    text.remove()
    return words


def texts(made):
    """Every text a reader can see in the figure; the tests look for the label here."""
    return [text.get_text() for text in made.findobj(matplotlib.text.Text) if text.get_visible()]


def nothing_to_draw(made, reason):
    """Says in the figure itself why it is empty."""
    made.text(0.5, 0.5, reason, ha="center", va="center", fontsize=12, color=MUTED)


def save(made, path):
    """Writes the PNG and forgets the figure."""
    made.savefig(path, dpi=DPI)
    plt.close(made)
