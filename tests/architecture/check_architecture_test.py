#!/usr/bin/env python3
"""Seeds one violation of each rule into a small clean tree and sees that the checker names it."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_architecture  # noqa: E402

CLEAN = {
    "README.md": "# A tree\n",
    "core/model/CMakeLists.txt": "fsdp_library(model SOURCES model.cpp)\n",
    "core/model/model.hpp": '// A model.\n#pragma once\n#include "core/units/dtype.hpp"\n',
    "core/model/model.cpp": '#include "core/model/model.hpp"\n#include <vector>\n',
    "core/config/CMakeLists.txt": "fsdp_library(config SOURCES load.cpp)\n",
    "core/config/load.cpp": '#include <yaml-cpp/yaml.h>\n#include "core/model/model.hpp"\n',
    "bench/backend/mpi/CMakeLists.txt": "fsdp_library(backend_mpi SOURCES executor.cpp)\n",
    "bench/backend/mpi/executor.cpp": '#include <mpi.h>\n#include "kernels/copy.hpp"\n',
    "tuner/app/CMakeLists.txt": "fsdp_executable(fsdp-tune SOURCES main.cpp)\n",
    "tuner/app/main.cpp": '#include <CLI/CLI.hpp>\n#include "bench/backend/mpi/backend.hpp"\n',
    "tests/unit/core/model/CMakeLists.txt": "fsdp_add_test(model SOURCES model_test.cpp)\n",
    "tests/unit/core/model/model_test.cpp": "// A path such as /tmp/x is fine in a test.\n",
}


def header(*lines):
    return "\n".join(["// A header.", "#pragma once", *lines, ""])


# rule -> (file that breaks it, its contents, words of the message)
SEEDED = {
    "top level": ("scripts/run.sh", "true\n", "scripts: the top level"),
    "left to right": ("core/model/a.hpp", header('#include "core/plan/wrap_plan.hpp"'),
                      "core/model may not use core/plan"),
    "plan and config": ("core/plan/a.hpp", header('#include "core/config/run_config.hpp"'),
                        "core/plan may not use core/config"),
    "core and bench": ("core/sim/a.hpp", header('#include "bench/executor.hpp"'),
                       "core/sim may not use bench"),
    "interfaces first": ("bench/a.hpp", header('#include "bench/measure/sampler.hpp"'),
                         "bench may not use bench/measure"),
    "kernels": ("kernels/a.hpp", header('#include "core/model/gemm.hpp"'),
                "kernels may not use core/model"),
    "measure and backend": ("bench/measure/a.hpp", header('#include "bench/backend/sim/backend.hpp"'),
                            "only apps and backend tests name a backend"),
    "tuner and backend": ("tuner/search/a.hpp", header('#include "bench/backend/mpi/backend.hpp"'),
                          "only apps and backend tests name a backend"),
    "test and backend": ("tests/property/a.hpp", header('#include "bench/backend/mpi/backend.hpp"'),
                         "only apps and backend tests name a backend"),
    "backend and backend": ("bench/backend/mpi/a.hpp",
                            header('#include "bench/backend/sim/backend.hpp"'),
                            "bench/backend/mpi may not use bench/backend/sim"),
    "tuner and app": ("tuner/report/a.hpp", header('#include "tuner/app/options.hpp"'),
                      "tuner may not use tuner/app"),
    "mpi": ("bench/measure/a.hpp", header("#include <mpi.h>"), "mpi.h belongs to"),
    "mpi quoted": ("tuner/app/a.hpp", header('#include "mpi.h"'), "mpi.h belongs to"),
    "cuda": ("bench/backend/mpi/a.hpp", header("#include <cuda_runtime.h>"),
             "cuda_runtime.h belongs to"),
    "nccl": ("kernels/a.hpp", header("#include <nccl.h>"), "nccl.h belongs to"),
    "dnnl": ("core/sim/a.hpp", header("#include <dnnl.hpp>"), "dnnl.hpp belongs to"),
    "yaml": ("core/model/a.hpp", header("#include <yaml-cpp/yaml.h>"), "yaml.h belongs to"),
    "yaml in a header": ("core/config/a.hpp", header("#include <yaml-cpp/yaml.h>"),
                         "yaml-cpp stays out of headers"),
    "command line": ("tuner/search/a.hpp", header("#include <CLI/CLI.hpp>"), "CLI.hpp belongs to"),
    "json": ("bench/backend/sim/a.hpp", header("#include <nlohmann/json.hpp>"),
             "json.hpp belongs to"),
    "log": ("core/plan/a.hpp", header("#include <spdlog/spdlog.h>"), "spdlog.h belongs to"),
    "clock": ("core/sim/a.hpp", header("#include <chrono>"), "chrono belongs to"),
    "files": ("core/model/a.hpp", header("#include <fstream>"), "fstream belongs to"),
    "pragma": ("core/units/a.hpp", "// A header.\n", "without #pragma once"),
    "opening": ("core/units/a.hpp", "#pragma once\n", "opens with what it is for"),
    "macro": ("core/units/a.hpp", header("#define TWICE(x) ((x) * 2)"), "no macros"),
    "macro beside the allowed one": ("kernels/clones.hpp", header("#define FSDP_CLONE_ALL"),
                                     "no macros"),
    "left-over": ("core/units/a.hpp", header("// TODO finish"), "unfinished work"),
    "length": ("core/units/a.hpp", header(*["//"] * 400), "longer than 400 lines"),
    "length of a test": ("tests/unit/a.hpp", header(*["//"] * 600), "longer than 600 lines"),
    "length of a script": ("plots/a.py", "pass\n" * 401, "longer than 400 lines"),
    "unlisted": ("core/model/orphan.cpp", "int x;\n", "never compiled"),
    "unlisted namesake": ("core/config/model.cpp", "int x;\n", "never compiled"),
    "machine path": ("configs/runs/a.yaml", "output: /home/somebody/runs\n", "path of one machine"),
}


class CheckArchitecture(unittest.TestCase):
    def found_in(self, extra):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN, **extra}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return list(check_architecture.violations(root))

    def test_clean_tree_has_no_violation(self):
        self.assertEqual(self.found_in({}), [])

    def test_each_seeded_violation_is_found_alone(self):
        for rule, (name, text, message) in SEEDED.items():
            with self.subTest(rule=rule):
                found = self.found_in({name: text})
                self.assertTrue(any(message in line for line in found), found)
                about = name.split("/")[0] if rule == "top level" else name
                self.assertTrue(all(line.startswith(about) for line in found), found)

    def test_build_outputs_and_dot_files_are_no_violation(self):
        extra = {"build/ci/a.hpp": "", "build-x/a.hpp": "", ".ci/run": "make test\n",
                 "results/runs/a.json": '"/home/somebody"'}
        self.assertEqual(self.found_in(extra), [])


if __name__ == "__main__":
    unittest.main()
