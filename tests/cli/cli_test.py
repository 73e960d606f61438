"""What a user of fsdp-tune sees: exit codes, stdout, stderr, records.

    cli_test.py --binary FSDP_TUNE --source ROOT [--mpiexec MPIEXEC] CASE...

CASE is Class or Class.method, as unittest names them. Needs only the standard library.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SETTINGS = argparse.Namespace()
SECONDS = 60  # of one command; a command that hangs fails its test

MODEL = """
    name: tiny-gpt2
    family: gpt2
    vocab: 211
    positions: 64
    layers: 4
    hidden: 48
    heads: 4
"""

RUN = """
    model: model.yaml
    batch: {sequence: 32, micro_batch: 1}
    policy: {param_dtype: bf16, reduce_dtype: f32}
    space:
      units: {sizes: [1, 2, 4]}
      prefetch: {forward: [0, 1], backward: [1]}
      reshard_after_forward: [true, false]
    measure: {stop: {rule: relative_error, max_error: 20 %, max_time: 1 s}, timeout: 20 s}
    tune: {budget: 8 s, indifference: 1 %, survivors: 3}
"""

SIM = """
    cluster: cluster.yaml
    mesh: {shard: 8}
"""


class CliTest(unittest.TestCase):
    """A folder with a tiny model and run files; commands run in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fsdp-tune-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("model.yaml", MODEL)
        self.write("run.yaml", RUN)
        cluster = pathlib.Path(SETTINGS.source) / "configs/clusters/illustrative-8.yaml"
        (self.folder / "cluster.yaml").write_text(cluster.read_text())
        self.write("sim.yaml", RUN, SIM)

    def write(self, name, *parts):
        text = "".join(textwrap.dedent(part) for part in parts)
        (self.folder / name).write_text(text)

    def execute(self, command):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("PMI", "SLURM", "OMPI"))}
        return subprocess.run(command, cwd=self.folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                              check=False)

    def tool(self, *arguments):
        return self.execute([SETTINGS.binary, *arguments])

    def ranks(self, count, *arguments):
        return self.execute([SETTINGS.mpiexec, "-n", str(count), SETTINGS.binary, *arguments])

    def assert_exit(self, result, code):
        self.assertEqual(result.returncode, code,
                         f"\nstdout:\n{result.stdout}\nstderr:\n{result.stderr}")

    def assert_said_once(self, result, text):
        self.assertEqual(result.stderr.count(text), 1, result.stderr)

    def records(self, folder="out"):
        return sorted((self.folder / folder).glob("*.json"))


class Usage(CliTest):
    def test_help_lists_commands_and_exit_codes(self):
        result = self.tool("--help")
        self.assert_exit(result, 0)
        for text in ("tune", "replay", "plan", "wrong data", "64  bad usage"):
            self.assertIn(text, result.stdout)

    def test_version(self):
        result = self.tool("--version")
        self.assert_exit(result, 0)
        self.assertRegex(result.stdout, r"^fsdp-tune \d+\.\d+\.\d+ \(\S+\)\n$")

    def test_unknown_command(self):
        result = self.tool("optimise", "run.yaml")
        self.assert_exit(result, 64)
        self.assertIn("unknown command 'optimise'", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_unknown_option(self):
        self.assert_exit(self.tool("run.yaml", "--nonsense"), 64)

    def test_misspelled_key_has_its_place_and_the_nearest_key(self):
        self.write("bad.yaml", RUN.replace("budget", "buget"))
        result = self.tool("plan", "bad.yaml")
        self.assert_exit(result, 64)
        self.assertRegex(result.stderr, r"bad\.yaml:\d+:\d+: tune\.buget")
        self.assertIn("budget", result.stderr)


class Plan(CliTest):
    def test_json(self):
        result = self.tool("plan", "sim.yaml", "--json")
        self.assert_exit(result, 0)
        document = json.loads(result.stdout)
        self.assertEqual(len(document["units"]), 5)  # root and four blocks
        self.assertTrue(document["collectives"])
        self.assertEqual(result.stderr, "")

    def test_text_names_the_model(self):
        result = self.tool("plan", "sim.yaml")
        self.assert_exit(result, 0)
        self.assertIn("tiny-gpt2", result.stdout)

    def test_findings_and_memory_are_told_with_their_remedies(self):
        result = self.tool("plan", "sim.yaml")
        for text in ("fsdp2 of PyTorch 2.14", "Memory a rank", "Findings", "do:  ", "Alignment"):
            self.assertIn(text, result.stdout)

    def test_schedule_lists_every_operation_and_folds_equal_units(self):
        result = self.tool("plan", "sim.yaml", "--schedule")
        self.assert_exit(result, 0)
        self.assertRegex(result.stdout, r"(?m)^#0 fwd0 u0 ")
        self.assertIn("again", result.stdout)
        self.assert_exit(self.tool("plan", "sim.yaml", "--schedule", "--json"), 64)

    def plan_of(self, model):
        self.write("of.yaml", f"model: {model}\nmesh: {{shard: 4}}\npolicy: {{wrap: {{by: block}}}}\n")
        return self.tool("plan", "of.yaml", "--json")

    def test_a_model_from_its_config(self):
        self.write("config.json", '{"model_type": "gpt2", "n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": 20}')
        result = self.plan_of("{hf: config.json}")
        self.assert_exit(result, 0)
        self.assertEqual([unit["name"] for unit in json.loads(result.stdout)["units"]],
                         ["root", "transformer.h.0", "transformer.h.1", "transformer.h.2"])

    def test_a_model_from_saved_weights(self):
        names = [f"layers.{i}.up.weight" for i in range(2)] + ["head.weight"]
        header = {name: {"dtype": "BF16", "shape": [4, 4], "data_offsets": [32 * i, 32 * i + 32]}
                  for i, name in enumerate(names)}
        text = json.dumps(header).encode()
        (self.folder / "w.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(32 * len(names)))
        result = self.plan_of("{safetensors: w.safetensors}")
        self.assert_exit(result, 0)
        self.assertEqual(sum(unit["numel"] for unit in json.loads(result.stdout)["units"]), 48)

    def test_a_bad_model_file_is_refused_with_its_place(self):
        self.write("config.json", '{"model_type": "gpt2", "n_embd": 16, "n_head": -2}')
        result = self.plan_of("{hf: config.json}")
        self.assert_exit(result, 64)
        self.assertRegex(result.stderr, r"config\.json: .*/n_head")
        self.write("tree.json", '{"root": {"name": "", "class": "A", "parameters": [{"name": "w"')
        result = self.plan_of("{tree: tree.json}")
        self.assert_exit(result, 64)
        self.assertIn("tree.json", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_without_a_mesh_the_key_is_named(self):
        result = self.tool("plan", "run.yaml")
        self.assert_exit(result, 64)
        self.assertIn("run.yaml: mesh: missing", result.stderr)
        self.assertIn("mesh: {shard: 8}", result.stderr)


class PrintConfig(CliTest):
    def test_is_read_back_to_itself(self):
        once = self.tool("tune", "sim.yaml", "--print-config")
        self.assert_exit(once, 0)
        (self.folder / "again.yaml").write_text(once.stdout)
        again = self.tool("tune", "again.yaml", "--print-config")
        self.assert_exit(again, 0)
        self.assertEqual(again.stdout, once.stdout)

    def test_without_a_run_file_shows_defaults(self):
        result = self.tool("tune", "--print-config")
        self.assert_exit(result, 0)
        self.assertIn("indifference: 1 %", result.stdout)


class Simulate(CliTest):
    def test_tune_is_labelled_simulated(self):
        result = self.tool("sim.yaml", "--backend", "sim", "--output", "out")
        self.assert_exit(result, 0)
        self.assertIn("simulated: not a measurement", result.stdout)
        self.assertNotIn("measured ms", result.stdout)
        self.assertNotIn("measured on", result.stdout)
        (path,) = self.records()
        record = json.loads(path.read_text())
        self.assertEqual(record["provenance"], "simulated: not a measurement")
        self.assertTrue(all(c["measurement"] is None for c in record["candidates"]))
        self.assertIn(path.name, result.stdout)
        self.assertIn("plots/all.py", result.stdout)

    def test_is_deterministic(self):
        outputs = []
        for _ in range(2):
            result = self.tool("sim.yaml", "--backend", "sim", "--output", "out", "--json")
            self.assert_exit(result, 0)
            record = json.loads(result.stdout)
            record["environment"]["started_utc"] = ""
            outputs.append(record)
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(len(self.records()), 2)  # the second did not overwrite the first

    def test_replay(self):
        result = self.tool("replay", "sim.yaml", "--backend", "sim", "--output", "out")
        self.assert_exit(result, 0)
        self.assertIn("simulated: not a measurement", result.stdout)
        self.assertNotIn("contents verified", result.stdout)

    def test_needs_a_cluster(self):
        result = self.tool("run.yaml", "--backend", "sim")
        self.assert_exit(result, 64)
        self.assertIn("cluster", result.stderr)

    def test_a_limit_nobody_meets(self):
        self.write("small.yaml", RUN, SIM, "memory: {limit: 4 KiB}\n")
        result = self.tool("small.yaml", "--backend", "sim", "--output", "out")
        self.assert_exit(result, 64)
        self.assertIn("no plan fits memory.limit 4 KiB: the smallest (", result.stderr)
        self.assertEqual(self.records(), [])

    def test_a_record_that_cannot_be_kept(self):
        (self.folder / "file").write_text("not a folder")
        result = self.tool("sim.yaml", "--backend", "sim", "--output", "file/out")
        self.assert_exit(result, 5)
        self.assertIn("simulated", result.stdout)  # the result is not lost
        self.assertIn("the record is not kept", result.stderr)


class Measure(CliTest):
    """Needs MPI: tiny steps on one or two ranks."""

    def test_one_rank_without_mpiexec(self):
        result = self.tool("replay", "run.yaml", "--output", "out")
        self.assert_exit(result, 0)
        self.assertIn("measured on 1 rank", result.stdout)
        self.assertIn("contents verified", result.stdout)

    def test_tune_on_two_ranks(self):
        result = self.ranks(2, "run.yaml", "--output", "out", "--json")
        self.assertIn(result.returncode, (0, 4), result.stderr)
        record = json.loads(result.stdout)  # one document: only rank 0 speaks
        self.assertEqual(record["provenance"], "measured")
        self.assertEqual(record["mesh"]["shard"], 2)
        measured = [c for c in record["candidates"] if c["outcome"] == "measured"]
        self.assertEqual(len(measured), 3)
        self.assertTrue(record["candidates"][0]["is_default"])
        for candidate in measured:
            measurement = candidate["measurement"]
            self.assertGreaterEqual(measurement["verified_steps"], 1)
            for row, step in zip(measurement["rank_step_ns"], measurement["step_ns"]):
                self.assertEqual(len(row), 2)
                self.assertEqual(max(row), step)
            self.assertIsNotNone(candidate["predicted_step_ns"])
        self.assertEqual(len(self.records()), 1)
        self.assertEqual(json.loads(self.records()[0].read_text()), record)

    def test_replay_json_on_two_ranks(self):
        result = self.ranks(2, "replay", "run.yaml", "--output", "out", "--json")
        self.assertIn(result.returncode, (0, 4), result.stderr)
        record = json.loads(result.stdout)
        self.assertEqual(record["command"], "replay")
        self.assertEqual(len(record["candidates"]), 1)


class Failures(CliTest):
    """Needs MPI: every failure ends all ranks, in time, with its code, said once."""

    def test_missing_run_file(self):
        result = self.ranks(2, "missing.yaml")
        self.assert_exit(result, 64)
        self.assert_said_once(result, "missing.yaml")

    def test_missing_model_file(self):
        (self.folder / "model.yaml").unlink()
        result = self.ranks(2, "run.yaml")
        self.assert_exit(result, 64)
        self.assert_said_once(result, "no such file 'model.yaml'")

    def test_shard_group_that_does_not_divide_the_ranks(self):
        self.write("three.yaml", RUN, "mesh: {shard: 3}\n")
        result = self.ranks(4, "three.yaml")
        self.assert_exit(result, 64)
        self.assert_said_once(result, "mesh.shard: 3 does not divide 4 ranks")

    def test_memory_limit_nobody_meets(self):
        self.write("small.yaml", RUN, "memory: {limit: 4 KiB}\n")
        result = self.ranks(2, "small.yaml", "--output", "out")
        self.assert_exit(result, 64)
        self.assert_said_once(result, "no plan fits memory.limit 4 KiB")
        self.assertEqual(self.records(), [])

    def test_ranks_with_different_configurations(self):
        self.write("other.yaml", RUN.replace("survivors: 3", "survivors: 2"))
        result = self.execute([SETTINGS.mpiexec, "-n", "1", SETTINGS.binary, "tune", "run.yaml",
                               ":", "-n", "1", SETTINGS.binary, "tune", "other.yaml"])
        self.assert_exit(result, 5)
        self.assert_said_once(result, "rank 1 read another configuration than rank 0")

    def test_a_configuration_that_is_bad_on_one_rank(self):
        result = self.execute([SETTINGS.mpiexec, "-n", "1", SETTINGS.binary, "tune", "run.yaml",
                               ":", "-n", "1", SETTINGS.binary, "tune", "missing.yaml"])
        self.assert_exit(result, 64)
        self.assert_said_once(result, "rank 1: ")

    def test_corrupted_byte_in_replay(self):
        result = self.ranks(2, "replay", "run.yaml", "--output", "out", "--inject-fault",
                            "rank=1,op=all_gather")
        self.assert_exit(result, 3)
        self.assert_said_once(result, "wrong data on rank 1: all_gather")
        self.assertEqual(self.records(), [])

    def test_corrupted_byte_in_tune(self):
        result = self.ranks(2, "tune", "run.yaml", "--output", "out", "--inject-fault",
                            "rank=0,op=reduce_scatter")
        self.assert_exit(result, 3)
        self.assert_said_once(result, "wrong data on rank 0: reduce_scatter")
        self.assertEqual(self.records(), [])

    def test_simulating_on_two_ranks_speaks_once(self):
        result = self.ranks(2, "sim.yaml", "--backend", "sim", "--output", "out")
        self.assert_exit(result, 0)
        self.assertEqual(result.stdout.count("simulated: not a measurement"), 1)
        self.assertEqual(len(self.records()), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("cases", nargs="+")
    parser.parse_args(namespace=SETTINGS)
    unittest.main(argv=[sys.argv[0], *SETTINGS.cases], verbosity=2)


if __name__ == "__main__":
    main()
