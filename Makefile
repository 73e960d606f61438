# The commands of README.md. What they need is installed where it may be (cmake/packages.txt);
# PACKAGES=no skips that look, for machines whose MPI or compiler comes from elsewhere.
CONFIG  ?= configs/runs/quickstart.yaml
RANKS   ?= 2
MPIEXEC ?= mpiexec
# The distribution's Python, because that one has the distribution's matplotlib.
PYTHON  ?= /usr/bin/python3
PACKAGES ?= yes

packages = $(if $(filter no,$(PACKAGES)),@true,@cmake/install-packages.sh) $(1)
sources  = $(shell find bench core kernels tuner tests -name '*.cpp' -o -name '*.hpp')

.PHONY: tune test all-tests fuzz format lint clean

# Build, measure on this machine, draw three figures beside the record.
tune:
	$(call packages,tune)
	cmake --preset cpu -DFSDP_TUNE_TESTS=OFF
	cmake --build --preset cpu --target fsdp-tune
	$(MPIEXEC) -n $(RANKS) build/cpu/bin/fsdp-tune $(CONFIG) </dev/null
	$(PYTHON) plots/all.py "$$(ls -t results/runs/*.json | head -n 1)"

# Everything with warnings as errors, then again under sanitizers: what computes under those for
# memory and undefined behaviour, the two threads of a step under the one for races. Then a minute of
# hostile model files.
test: all-tests fuzz

all-tests:
	$(call packages,tune test)
	cmake --preset ci
	cmake --build --preset ci
	ctest --preset ci
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan
	cmake --preset tsan
	cmake --build --preset tsan --target conformance-mpi
	ctest --preset tsan

# Model files that nobody wrote: from the corpus on, for FUZZ_SECONDS. What crashes is left in
# build/fuzz as crash-*; move it to tests/fuzz/corpus under a name that says what it is.
FUZZ_SECONDS ?= 60
fuzz:
	$(call packages,tune test)
	cmake --preset fuzz
	cmake --build --preset fuzz
	mkdir -p build/fuzz/corpus
	build/fuzz/bin/model-files-fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=4096 \
	  -artifact_prefix=build/fuzz/ -verbosity=0 -print_final_stats=1 build/fuzz/corpus tests/fuzz/corpus

format:
	$(call packages,lint)
	clang-format -i $(sources)

lint:
	$(call packages,tune test lint)
	clang-format --dry-run --Werror $(sources)
	cmake --preset ci
	run-clang-tidy -quiet -p build/ci '^$(CURDIR)/(bench|core|kernels|tuner)/.*\.cpp$$'

clean:
	rm -rf build
