# Everything a developer does here. Needs Python 3.10 or newer and Rust (https://rustup.rs), nothing else: the
# environment .venv is made, filled and kept up to date by the targets that need it.

SHELL  := bash
.SHELLFLAGS := -o pipefail -c

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# maturin, which builds the extension, is found on PATH. Of what pip and cargo tell, one line a package is shown.
INSTALL := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --verbose --disable-pip-version-check --no-build-isolation
SHOWN   := ^Collecting |^Successfully |^ +(Compiling|Finished|Downloading) .*|^ *error|^ERROR
WATCHED := 2>&1 | tee build/install.log | { grep --line-buffered -E '$(SHOWN)' || true; } || { tail -n 40 build/install.log; exit 1; }
SAY    := @printf '\033[1m── %s\033[0m\n'
# What the tests compare with is of known versions.
VERSIONS := --constraint tests/constraints.txt
# How to time: three processes each, and cold starts.
BENCH  ?= --against onnxruntime,openvino,mnn --processes 3 --cold
# A folder of models with an INDEX.json: the third-party ones where they are, else our own.
OTHERS := $(wildcard ../shared/zoo)
ZOO    ?= $(or $(OTHERS),models)
# What is known not to be equal in those.
KNOWN  ?= $(if $(filter $(ZOO),$(OTHERS)),--baseline tests/trained/zoo.toml)

# A change in any of these means that the extension has to be built again; cargo then does only what is needed.
SOURCES := pyproject.toml $(wildcard wheel-data/scripts/*) $(shell find runtime -name target -prune -o \( -name '*.rs' -o -name '*.toml' -o -name Cargo.lock \) -print)
# The same for the extensions that run kernels for GPUs.
KERNELS := $(SOURCES) $(wildcard runtime/device/kernels/*)
# The runner of the Rust tests: the one on PATH, else one of our own. It reuses what maturin built, because the whole
# workspace is named.
# Macros declare the modules of operators and kernels, which `cargo fmt` does not follow.
RUST_FILES = $(shell find runtime -name target -prune -o -name '*.rs' -print)
NEXTEST := $(or $(shell command -v cargo-nextest),$(CURDIR)/$(BIN)/cargo-nextest)

.DEFAULT_GOAL := help
.PHONY: help demo build quick quick-emulator quick-cuda test check format reformat lint lint-cuda types test-rust test-python test-levels test-fast test-lowest test-newest test-processors test-emulated sanitize generate bless bench bench-models bench-kernels bench-startup zoo cuda cuda-bundle cuda-check emulator fuzz wheel clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-13s %s\n", $$1, $$2}'

$(BIN)/maturin:
	$(SAY) "Making the Python environment $(VENV)"
	@command -v cargo >/dev/null || { echo "Rust is missing: install it from https://rustup.rs"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed" if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "maturin>=1.9,<2"

$(VENV)/.demo: $(BIN)/maturin $(SOURCES)
	$(SAY) "Building the runtime and installing candle-compiler (the first time about five minutes on two cores)"
	@mkdir -p build
	@$(INSTALL) --editable ".[check]" $(WATCHED)
	@touch $@

$(VENV)/.dev: $(BIN)/maturin $(SOURCES) tests/constraints.txt
	$(SAY) "Building the runtime and installing all that the tests need (PyTorch alone is some gigabytes)"
	@mkdir -p build
	@$(INSTALL) $(VERSIONS) --editable ".[dev]" $(WATCHED)
	@touch $(VENV)/.demo $(VENV)/.test $(VENV)/.quick $@

$(VENV)/.test: $(BIN)/maturin $(SOURCES) tests/constraints.txt
	$(SAY) "Building the runtime and installing what the tests need that need no PyTorch"
	@mkdir -p build
	@$(INSTALL) $(VERSIONS) --editable ".[test]" $(WATCHED)
	@touch $(VENV)/.demo $(VENV)/.quick $@

# The same with the runtime of `make quick`, where nothing has installed these packages: one build instead of two.
$(VENV)/.quick: pyproject.toml tests/constraints.txt | $(BIN)/maturin
	$(SAY) "Building the runtime and installing what the tests need that need no PyTorch (about four minutes on two cores)"
	@mkdir -p build
	@$(INSTALL) $(VERSIONS) --config-settings=build-args="--profile quick" --editable ".[test]" $(WATCHED)
	@touch $@

$(VENV)/.bench: $(VENV)/.demo
	$(SAY) "Installing OpenVINO and MNN, to compare with"
	@mkdir -p build
	@$(INSTALL) --editable ".[bench]" $(WATCHED)
	@touch $@

$(VENV)/.models: $(VENV)/.bench
	$(SAY) "Installing what the architectures are exported with (PyTorch is large: some minutes)"
	@mkdir -p build
	@$(INSTALL) --editable ".[bench,models]" $(WATCHED)
	@touch $@

build: $(VENV)/.demo ## the environment and the compiler, ready to use in .venv
	$(SAY) "Ready: try  $(BIN)/candlec --help"

demo: $(VENV)/.demo ## compile a trained model, run it, check it against onnxruntime
	@$(BIN)/python tools/demo.py

bench: $(VENV)/.bench ## time every zoo model beside onnxruntime, OpenVINO and MNN
	$(SAY) "Timing the models of $(ZOO) beside onnxruntime, OpenVINO and MNN"
	$(BIN)/candlec bench --zoo $(ZOO) $(BENCH)

bench-models: $(VENV)/.models ## the same of the architectures of models/, which are exported first
	$(SAY) "Timing the architectures of models/ beside onnxruntime, OpenVINO and MNN"
	$(BIN)/python -m models --folder build/models
	$(BIN)/candlec bench --zoo build/models $(BENCH)

bench-kernels: $(VENV)/.bench ## the same of the operators of benchmarks/suite.toml, one at a time
	$(SAY) "Timing the operators of benchmarks/suite.toml beside onnxruntime, OpenVINO and MNN"
	$(BIN)/python benchmarks/kernels.py --folder build/kernels
	$(BIN)/candlec bench --zoo build/kernels $(BENCH)

bench-startup: $(VENV)/.demo ## time how long the verbs take to start, in new processes (some minutes)
	$(SAY) "Timing the start of the verbs"
	$(BIN)/python benchmarks/startup.py

zoo: $(VENV)/.demo ## every zoo model against onnxruntime, every way it can be compiled
	$(SAY) "Checking the models of $(ZOO) against onnxruntime"
	$(BIN)/candlec zoo run --zoo $(ZOO) $(KNOWN)
	$(BIN)/candlec zoo run --zoo $(ZOO) $(KNOWN) --unpin

$(VENV)/.nvcc: $(BIN)/maturin pyproject.toml
	$(SAY) "Installing NVIDIA's compiler, which needs no GPU"
	@mkdir -p build
	@$(INSTALL) --editable ".[cuda-build]" $(WATCHED)
	@touch $(VENV)/.demo $@

compiler/_runtime_cuda.abi3.so: $(VENV)/.nvcc $(KERNELS) tools/build_cuda.py
	$(SAY) "Building the module for CUDA (the first time about four minutes on two cores)"
	$(BIN)/python tools/build_cuda.py

cuda: compiler/_runtime_cuda.abi3.so ## the module for NVIDIA's GPUs; needs neither GPU, driver nor toolkit
	$(SAY) "Ready: try  $(BIN)/candlec run PLAN --device cuda  where there is a driver"

cuda-bundle: $(VENV)/.dev compiler/_runtime_cuda.abi3.so ## what `make cuda-check` needs, in build/cuda-check, to be carried to a machine with a GPU
	$(SAY) "Gathering what is checked on a GPU; networks are exported first, the first time some minutes"
	$(BIN)/python tools/cuda_bundle.py --zoo $(ZOO)

# One of the calls smoke, compare and tune; without it all three.
CALL ?=
cuda-check: ## check, time and profile plans on the GPU of this machine, with what cuda-bundle made; needs no Rust
	$(SAY) "Checking plans on the GPU"
	$(PYTHON) tools/cuda_check.py $(CALL)

# A process may have the former module loaded: `install` makes a new file, but `cp` would overwrite the one that is mapped.
compiler/_runtime_emulator.abi3.so: $(VENV)/.demo $(KERNELS)
	$(SAY) "Building the module that runs the kernels for GPUs on the processor"
	cd runtime && cargo build --release --package candle-plan-emulator --features extension-module
	install -m 755 runtime/target/release/lib_runtime_emulator.so $@

emulator: compiler/_runtime_emulator.abi3.so ## the module that runs the kernels for GPUs on the processor, for tests

# The loop of a changed operator or kernel. The next target that needs a module builds the optimized one again.
quick: $(VENV)/.quick ## the changed runtime in seconds, for tests, with pytest; its code is a little slower
	cd runtime && cargo build --profile quick --package candle-plan-python --features extension-module
	@rm -f $(VENV)/.demo $(VENV)/.test $(VENV)/.dev
	install -m 755 runtime/target/quick/lib_runtime.so compiler/_runtime.abi3.so

quick-emulator: $(VENV)/.quick ## the same of the module that runs the kernels for GPUs on the processor
	cd runtime && cargo build --profile quick --package candle-plan-emulator --features extension-module
	install -m 755 runtime/target/quick/lib_runtime_emulator.so compiler/_runtime_emulator.abi3.so
	@touch --date=@0 compiler/_runtime_emulator.abi3.so

quick-cuda: $(VENV)/.nvcc ## the same of the module for NVIDIA's GPUs
	$(BIN)/python tools/build_cuda.py quick
	@touch --date=@0 compiler/_runtime_cuda.abi3.so

test: test-rust test-python test-levels ## every test, Rust and Python
	$(SAY) "Rust tests, once more"
	@grep -E '^ *Summary' build/rust-tests.log

$(CURDIR)/$(BIN)/cargo-nextest: $(BIN)/maturin
	$(SAY) "Installing the runner of the Rust tests (once, some minutes)"
	@mkdir -p build
	@cargo install --locked --root $(VENV) cargo-nextest --version 0.9.143 $(WATCHED)

test-rust: $(VENV)/.demo $(NEXTEST)
	$(SAY) "Rust tests"
	@mkdir -p build
	cd runtime && $(NEXTEST) nextest run --no-fail-fast --release --workspace 2>&1 | tee ../build/rust-tests.log

test-python: $(VENV)/.dev compiler/_runtime_emulator.abi3.so compiler/_runtime_cuda.abi3.so
	$(SAY) "Python tests"
	$(BIN)/python -m pytest -q -n 2

# Tests of GPUs' kernels and tools, of layers of PyTorch, and of trained models, and those that take long.
SLOW := layers onnx_backend standin trained test_cuda.py test_cuda_check.py test_device_arrays.py test_emulator.py \
	test_convolution_constants.py test_convolution_forms.py test_fuzz.py test_gpu_docs.py test_gpu_report.py test_gpu_tools.py
test-fast: $(VENV)/.test ## the Python tests that need neither PyTorch nor a module for GPUs (some minutes)
	$(SAY) "Python tests without PyTorch and GPUs"
	WITHOUT_TORCH=1 $(BIN)/python -m pytest -q -n 2 -m "not slow" $(SLOW:%=--ignore=tests/%)

test-levels: $(VENV)/.dev $(NEXTEST) ## the tests of operators and models at the lower instruction sets of this processor
	@levels=$$($(BIN)/python -c 'from compiler.runtime.processor import levels; print(*levels()[:-1])') || exit 1; for level in $$levels; do \
		printf '\033[1m── %s\033[0m\n' "Tests at CANDLE_PLAN_ISA=$$level"; export CANDLE_PLAN_ISA=$$level; \
		(cd runtime && $(NEXTEST) nextest run --no-fail-fast --status-level fail --release --workspace -E 'package(candle-plan)') || exit 1; \
		$(BIN)/python -m pytest -q -n 2 tests/lower tests/trained/test_zoo.py -k 'not unpinned' || exit 1; \
	done

test-lowest: $(VENV)/.demo ## a part of the tests with the lowest versions of what pyproject.toml depends on
	$(SAY) "Tests with the lowest versions, in build/lowest"
	$(BIN)/python tools/versions.py lowest

test-newest: $(VENV)/.demo ## the same with the newest versions that there are today
	$(SAY) "Tests with the newest versions, in build/newest"
	$(BIN)/python tools/versions.py newest

# The emulator of processors, which is installed where this may be done.
QEMU_HELP := qemu-x86_64-static is not installed, and could not be: as root, apt-get install qemu-user-static
test-processors: ## a part of the tests on other x86-64 processors, which qemu emulates
	$(SAY) "Tests on other processors"
	@mkdir -p build
	@command -v qemu-x86_64-static >/dev/null || { apt-get update && apt-get install -y qemu-user-static; } >build/qemu.log 2>&1 || true
	@if command -v qemu-x86_64-static >/dev/null; then $(MAKE) --no-print-directory test-emulated; else echo "Skipped: $(QEMU_HELP)"; fi

test-emulated: $(VENV)/.dev $(NEXTEST)
	cd runtime && $(NEXTEST) nextest list --release --workspace --message-format json >../build/rust-tests.json
	$(BIN)/python -m pytest -q -n 2 tests/processors.py

# The C++ of the emulator's kernels is checked, too.
sanitize: $(NEXTEST) ## the Rust tests of kernels, devices and plans under AddressSanitizer, on Linux (some minutes)
	$(SAY) "Rust tests of kernels, devices and plans, on the emulator too, under AddressSanitizer"
	cd runtime && RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CXXFLAGS=-fsanitize=address ASAN_OPTIONS=detect_leaks=0 \
		$(NEXTEST) nextest run --no-fail-fast --package candle-plan-kernels --package candle-plan-device --package candle-plan --features candle-plan-device/emulator \
		--target "$$(rustc -vV | sed -n 's/^host: //p')" --target-dir target/sanitize

check: format lint types test test-lowest test-newest test-processors lint-cuda ## what CI runs: format, lints, types, every test

$(BIN)/ruff: $(BIN)/maturin tests/constraints.txt
	$(SAY) "Installing the linters"
	$(BIN)/pip install --quiet --disable-pip-version-check $(VERSIONS) ruff "codespell[toml]"
	@touch $@

format: $(BIN)/ruff
	$(SAY) "Format"
	$(BIN)/ruff format --check .
	@rustfmt --edition 2021 --check $(RUST_FILES)
	cargo fmt --check --manifest-path tests/standin/candle/Cargo.toml -- --config-path runtime

reformat: $(BIN)/ruff ## formats every Python and Rust file
	$(BIN)/ruff format .
	@rustfmt --edition 2021 $(RUST_FILES)

lint: $(BIN)/ruff
	$(SAY) "Lints"
	$(BIN)/ruff check .
	$(BIN)/codespell
	cd runtime && cargo clippy --release --workspace --all-targets -- -D warnings

lint-cuda: compiler/_runtime_cuda.abi3.so
	$(SAY) "Lints of what is built for CUDA alone"
	$(BIN)/python tools/build_cuda.py clippy
	$(BIN)/python -m tests.standin.program clippy

types: $(VENV)/.dev
	$(SAY) "Types"
	$(BIN)/mypy

generate: quick $(BIN)/ruff ## write the files that are generated: from the Rust source, and pages of docs/ from the code's tables
	$(SAY) "Generating"
	$(BIN)/python tools/generate.py

bless: $(VENV)/.dev ## accept the present output as the expected one of the golden tests
	$(SAY) "Blessing goldens: review the difference before you commit it"
	BLESS=1 $(BIN)/python -m pytest -q tests/golden

fuzz: $(VENV)/.dev ## change files and plans at random, some hundred thousand times; a crash fails
	$(SAY) "Fuzzing"
	FUZZ=50 $(BIN)/python -m pytest -q -n 2 tests/test_fuzz.py

wheel: $(BIN)/maturin ## the wheel that is published, optimized as a whole, in build/wheels
	$(SAY) "Building the wheel"
	$(BIN)/maturin build --profile wheel --strip --out build/wheels

clean: ## remove the environment and everything built
	rm -rf $(VENV) build runtime/target compiler/_runtime*.so
