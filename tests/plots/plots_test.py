"""The figures of plots/ on made-up records: they exist, show something, and say where their numbers
come from; files that are no records are refused with one line.

    python3 tests/plots/plots_test.py
"""

import copy
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "plots"))
sys.path.insert(0, str(SOURCE / "tests" / "plots"))

import jsonschema  # noqa: E402
import matplotlib.image  # noqa: E402

import load  # noqa: E402
import memory  # noqa: E402
import sample_record  # noqa: E402
import step_time  # noqa: E402
import style  # noqa: E402
import timeline  # noqa: E402

FIGURES = (step_time, timeline, memory)
SAMPLE = sample_record.make_record()
SIMULATED = sample_record.make_record(simulated=True)


def draw_all(record_path, *options):
    """Runs the command as a user does."""
    return subprocess.run([sys.executable, str(SOURCE / "plots" / "all.py"), str(record_path),
                           *options], capture_output=True, text=True, check=False, timeout=120)


class InTemporaryFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, document, name="run.json"):
        path = self.folder / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    def load(self, document):
        return load.load(self.write(document))


class Sample(unittest.TestCase):
    def test_is_a_record_of_the_schema(self):
        schema = json.loads((SOURCE / "results" / "record.schema.json").read_text())
        for record in (SAMPLE, SIMULATED, sample_record.make_record(60, (1, 4))):
            jsonschema.validate(record, schema, cls=jsonschema.Draft7Validator)

    def test_has_what_a_real_run_has(self):
        self.assertEqual(len(SAMPLE["candidates"]), 36)
        self.assertEqual(sum(c["measurement"] is not None for c in SAMPLE["candidates"]), 6)


class Documentation(unittest.TestCase):
    def test_names_every_key_of_the_schema(self):
        schema = json.loads((SOURCE / "results" / "record.schema.json").read_text())
        readme = (SOURCE / "results" / "README.md").read_text()
        keys = set()

        def collect(node):
            if isinstance(node, dict):
                keys.update(node.get("properties", {}))
                for child in node.values():
                    collect(child)
            elif isinstance(node, list):
                for child in node:
                    collect(child)

        collect(schema)
        self.assertGreater(len(keys), 60)
        documented = set(re.findall(r"`([a-z_0-9]+)`", readme))
        self.assertEqual(sorted(keys - documented), [])


class Command(InTemporaryFolder):
    def check_pictures(self, paths):
        for path in paths:
            pixels = matplotlib.image.imread(path)
            self.assertGreaterEqual(pixels.shape[1], 800, path)
            colours = {tuple(pixel) for pixel in pixels[::3, ::3, :3].reshape(-1, 3).tolist()}
            self.assertGreater(len(colours), 20, f"{path} is blank")

    def test_writes_three_pictures_beside_the_record(self):
        path = self.write(SAMPLE, "tune-job7.json")
        done = draw_all(path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        expected = [self.folder / f"tune-job7-{figure.NAME}.png" for figure in FIGURES]
        self.assertEqual(done.stdout.split(), [str(picture) for picture in expected])
        self.check_pictures(expected)

    def test_writes_into_another_folder(self):
        out = self.folder / "new" / "figures"
        done = draw_all(self.write(SIMULATED), "--out", str(out))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_pictures(sorted(out.glob("run-*.png")))
        self.assertEqual(len(list(out.iterdir())), 3)

    def refused(self, document):
        """The one line on stderr."""
        path = self.write(document)
        done = draw_all(path)
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith(f"{path}: "), done.stderr)
        self.assertEqual(list(self.folder.glob("*.png")), [])
        return done.stderr

    def test_refuses_another_version(self):
        said = self.refused({**SAMPLE, "fsdp_tune_record": 2})
        self.assertIn("fsdp_tune_record: version 2 is not 1", said)

    def test_refuses_what_is_no_record(self):
        self.assertIn("'fsdp_tune_record' is missing", self.refused({"rows": []}))
        self.assertIn("is not a JSON document", self.refused('{"fsdp_tune_record": 1,'))
        self.assertIn("'fsdp_tune_record' is missing", self.refused("[1, 2]"))

    def test_names_a_missing_key_in_full(self):
        record = copy.deepcopy(SAMPLE)
        del record["candidates"][3]["memory"]["total_bytes"]
        self.assertIn(": candidates[3].memory.total_bytes: missing", self.refused(record))

    def test_names_a_key_of_the_wrong_type(self):
        record = copy.deepcopy(SAMPLE)
        record["winner_timeline"][0]["start_ns"] = "soon"
        self.assertIn(": winner_timeline[0].start_ns: must be a number", self.refused(record))
        self.assertIn("winner_index: names candidate 36, but there are 36",
                      self.refused({**SAMPLE, "winner_index": 36}))

    def test_refuses_a_bad_command_line(self):
        for options in (["--outt", "x"], ["second.json"]):
            done = draw_all(self.write(SAMPLE), *options)
            self.assertEqual(done.returncode, 64)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_says_which_file_cannot_be_read_or_written(self):
        done = draw_all(self.folder / "none.json")
        self.assertEqual(done.returncode, 64)
        self.assertIn("none.json: cannot be read: No such file", done.stderr)
        path = self.write(SAMPLE)
        done = draw_all(path, "--out", str(path / "below"))
        self.assertEqual(done.returncode, 5)
        self.assertIn("cannot be written: Not a directory", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Provenance(InTemporaryFolder):
    def label_texts(self, document):
        record = self.load(document)
        for figure in FIGURES:
            made = figure.draw(record)
            texts = style.texts(made)
            style.plt.close(made)
            yield figure.NAME, record, texts

    def test_every_figure_says_what_was_measured(self):
        for name, record, texts in self.label_texts(SAMPLE):
            label = "measured, backend mpi, 2 ranks, GPT-2 124M, 89M parameters, " \
                    "scaled: vocabulary 50257 -> 4096"
            self.assertEqual(style.provenance_label(record), label)
            self.assertIn(label, texts, name)
            self.assertFalse(any("SIMULATED" in text for text in texts), name)

    def test_a_simulated_record_never_looks_measured(self):
        for name, record, texts in self.label_texts(SIMULATED):
            label = style.provenance_label(record)
            self.assertTrue(label.startswith("SIMULATED: not a measurement, backend sim"), label)
            self.assertIn(label, texts, name)
            words = [text for text in texts if text != label and text != record.verdict]
            self.assertFalse(any("measured" in text for text in words), (name, words))

    def test_a_long_model_text_never_costs_the_warning(self):
        long = copy.deepcopy(SIMULATED)
        long["model"]["scaling"] = "many words " * 60
        for name, _, texts in self.label_texts(long):
            label = [text for text in texts if text.startswith("SIMULATED: not a measurement")]
            self.assertEqual(len(label), 1, name)
            self.assertTrue(label[0].endswith("…"), name)


class Edges(InTemporaryFolder):
    """Records a user will have: nothing measured, nothing at all, sixty units, one candidate."""

    def draw(self, document):
        record = self.load(document)
        figures = {figure.NAME: figure.draw(record) for figure in FIGURES}
        for made in figures.values():
            made.canvas.draw()
            self.addCleanup(style.plt.close, made)
        return {name: style.texts(made) for name, made in figures.items()}

    def test_an_empty_record_says_so(self):
        texts = self.draw({**SAMPLE, "candidates": [], "default_index": None, "winner_index": None,
                           "winner_timeline": [], "winner_predicted_timeline": []})
        self.assertIn("no candidate has a step time", texts["step_time"])
        self.assertIn("no candidate has a step time", texts["memory"])
        self.assertIn("the record holds no timeline of the winner", texts["timeline"])

    def test_predictions_alone(self):
        record = copy.deepcopy(SAMPLE)
        for candidate in record["candidates"]:
            candidate["measurement"] = None
        record["winner_timeline"] = []
        texts = self.draw(record)
        self.assertIn("Pareto front, predicted", texts["memory"])
        self.assertFalse(any("95 % interval" in text for text in texts["step_time"]))
        self.assertTrue(any(text.startswith("predicted: ") for text in texts["timeline"]))

    def test_figures_that_do_not_exist_are_not_drawn_as_zero(self):
        record = copy.deepcopy(SAMPLE)
        winner = record["candidates"][record["winner_index"]]
        winner["measurement"]["summary"].update(median_ns=None, low_ns=None, high_ns=None)
        self.assertIsNone(self.load(record).winner.measured)
        self.draw(record)

    def test_too_few_samples_give_no_interval(self):
        record = copy.deepcopy(SAMPLE)
        for candidate in record["candidates"]:
            if candidate["measurement"]:
                candidate["measurement"]["summary"].update(low_ns=None, high_ns=None)
        self.draw(record)

    def test_the_default_may_be_the_winner(self):
        texts = self.draw({**SAMPLE, "default_index": SAMPLE["winner_index"]})
        self.assertIn("default and winner", texts["step_time"])

    def test_sixty_units_keep_their_names_apart(self):
        record = self.load(sample_record.make_record(60, (1,)))
        made = timeline.draw(record)
        self.addCleanup(style.plt.close, made)
        made.canvas.draw()
        renderer = made.canvas.get_renderer()
        for axes in made.axes:
            names = [text for text in axes.texts if re.fullmatch(r"root|\d+", text.get_text())]
            self.assertGreater(len(names), 60)
            boxes = [text.get_window_extent(renderer) for text in names]
            for i, box in enumerate(boxes):
                for other in boxes[i + 1:]:
                    self.assertFalse(box.overlaps(other), (box, other))


class Details(InTemporaryFolder):
    def test_the_pareto_front_holds_whom_nobody_beats_in_both(self):
        record = self.load(SAMPLE)
        timed = [some for some in record.candidates if some.step_ms is not None]
        front = memory.pareto_front(record, timed)
        run = [some for some in timed if some.measured]
        self.assertTrue(front)
        for candidate in run:
            beaten = any(other.step_ms < candidate.step_ms and
                         other.memory_bytes < candidate.memory_bytes for other in run)
            if beaten:
                self.assertNotIn(candidate, front)
        self.assertIn(min(run, key=lambda some: some.step_ms), front)
        self.assertIn(min(some.memory_bytes for some in run),
                      [some.memory_bytes for some in front])

    def test_the_pareto_front_ends_at_the_limit(self):
        smallest = min(c["memory"]["total_bytes"] for c in SAMPLE["candidates"])
        record = self.load({**SAMPLE, "memory_limit_bytes": smallest - 1})
        self.assertEqual(memory.pareto_front(record, record.candidates), [])

    def test_short_names(self):
        names = timeline.short_names(["root", "model.layers.3", "h.4+h.5+h.6", "h.1+h.3",
                                      "model.norm+lm_head", "wte+h.0+h.1", ""])
        self.assertEqual(list(names.values()),
                         ["root", "3", "4-6", "1+3", "norm+lm_head", "wte+0-1", ""])

    def test_names_spread_in_a_regular_rhythm(self):
        close = [(20 + 10 * i, 7, str(i)) for i in range(12)]
        self.assertEqual([name for _, _, name in timeline.spread(close)],
                         ["0", "2", "4", "6", "8", "10"])
        self.assertEqual(len(timeline.spread([(20 + 100 * i, 7, "u")
                                              for i in range(12)])), 12)
        self.assertEqual(timeline.spread([]), [])

    def test_phases_follow_the_compute_stream(self):
        record = self.load(SAMPLE)
        stretches = timeline.phases(record.timeline)
        self.assertEqual([phase for phase, _, _ in stretches], ["forward", "backward"])
        self.assertEqual(stretches[0][1], 0)
        self.assertEqual(stretches[0][2], stretches[1][1])

    def test_every_operation_of_the_schema_has_a_colour(self):
        schema = json.loads((SOURCE / "results" / "record.schema.json").read_text())
        row = schema["definitions"]["timeline"]["items"]["properties"]
        self.assertEqual(set(row["operation"]["enum"]), set(style.OPERATION_COLOURS))
        self.assertEqual(set(row["operation"]["enum"]), set(timeline.OPERATIONS))
        self.assertEqual(set(row["stream"]["enum"]), set(timeline.STREAMS))
        self.assertEqual(len(set(style.OPERATION_COLOURS.values())), len(timeline.OPERATIONS))


if __name__ == "__main__":
    unittest.main()
