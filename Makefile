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

.PHONY: tune test format lint clean

# Build, measure on this machine, draw three figures beside the record.
tune:
	$(call packages,tune)
	cmake --preset cpu -DFSDP_TUNE_TESTS=OFF
	cmake --build --preset cpu --target fsdp-tune
	$(MPIEXEC) -n $(RANKS) build/cpu/bin/fsdp-tune $(CONFIG) </dev/null
	$(PYTHON) plots/all.py "$$(ls -t results/runs/*.json | head -n 1)"

# Everything with warnings as errors, then again under sanitizers: what computes under those for
# memory and undefined behaviour, the two threads of a step under the one for races.
test:
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
