# The commands of a developer. They need Python 3.10 or newer and Rust (https://rustup.rs). A target that needs the
# environment .venv creates it, and keeps its packages up to date.

SHELL  := bash
.SHELLFLAGS := -o pipefail -c

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# pip finds maturin, which builds the extension, on PATH. It compiles no Python files, because most are never imported. Of the
# output of pip and cargo, a target shows a line a package.
INSTALL := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --verbose --disable-pip-version-check --no-build-isolation --no-compile
SHOWN   := ^Collecting |^Successfully |^ +(Compiling|Finished|Downloading) .*|^ *error|^ERROR
WATCHED := 2>&1 | tee build/install.log | { grep --line-buffered -E '$(SHOWN)' || true; } || { tail -n 40 build/install.log; exit 1; }
# Two processes run the tests. Each begins with a half of them, whose files share what they prepare, and the first that is done
# takes over half of the other's rest.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal
# The time shows how long each part of a long target takes.
SAY    := @printf '\033[1m── %s  %s\033[0m\n' "$$(date +%T)"
# Python keeps compiled modules here, even if the environment of `make` forbids it: otherwise each of the thousand processes
# that the tests start would compile hundreds of modules again.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
# The tests load many libraries into one process. Each of the extensions needs 400 bytes of the memory that the C library
# keeps for variables of threads, and OpenMP's libraries take some too.
export GLIBC_TUNABLES := glibc.rtld.optional_static_tls=4096
# The tests compare with known versions of other packages.
VERSIONS := --constraint tests/constraints.txt
# The options of `candlec bench`: three processes for each model, and cold starts.
BENCH  ?= --against onnxruntime,openvino,mnn --processes 3 --cold
# The folder of models, with an INDEX.json: the third-party models if they exist, otherwise the project's own.
OTHERS := $(wildcard ../shared/zoo)
ZOO    ?= $(or $(OTHERS),models)
# The known differences and the measures of the third-party models, and the facts of both folders.
KNOWN  ?= $(if $(filter $(ZOO),$(OTHERS)),--baseline tests/trained/zoo.toml --measures tests/trained/measures.toml --facts tests/trained/facts.toml,$(if $(filter $(ZOO),models),--facts models/facts.toml))

# After a change in one of these files, make builds the extension again.
SOURCES := pyproject.toml $(wildcard wheel-data/scripts/*) $(shell find runtime -name target -prune -o \( -name '*.rs' -o -name '*.toml' -o -name Cargo.lock \) -print)
# The same for the extensions with GPU kernels.
KERNELS := $(SOURCES) $(wildcard runtime/device/kernels/*)
# Every Rust file: `cargo fmt` misses the modules of operators and kernels, because macros declare them.
RUST_FILES = $(shell find runtime -name target -prune -o -name '*.rs' -print)
# The runner of the Rust tests: the one on PATH, otherwise one in .venv. With --workspace, it reuses maturin's build.
NEXTEST := $(or $(shell command -v cargo-nextest),$(CURDIR)/$(BIN)/cargo-nextest)

# Builds an extension with maturin's settings of pyo3, if maturin has run: with others, cargo would compile pyo3 again.
EXTENSION := cd runtime && for file in target/maturin/pyo3-config-*.txt; do \
	[ ! -e "$$file" ] || export PYO3_CONFIG_FILE="$$PWD/$$file"; done; cargo build --features extension-module

.DEFAULT_GOAL := help
.PHONY: help demo build quick quick-emulator quick-cuda test check format reformat lint lint-cuda types test-rust test-python test-levels test-fast test-lowest test-newest test-processors test-emulated test-arm test-page chromium sanitize generate bless bench bench-models bench-small bench-kernels bench-startup bench-commits zoo zoo-hub zoo-slice bless-slice cuda cuda-bundle cuda-check emulator fuzz wheel arm-tools clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-15s %s\n", $$1, $$2}'

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
	$(SAY) "Building the runtime and installing the packages of all tests (PyTorch takes several gigabytes)"
	@mkdir -p build
	@$(INSTALL) $(VERSIONS) --editable ".[dev]" $(WATCHED)
	@touch $(VENV)/.demo $(VENV)/.test $(VENV)/.quick $@

$(VENV)/.test: $(BIN)/maturin $(SOURCES) tests/constraints.txt
	$(SAY) "Building the runtime and installing the packages of the tests that need no PyTorch"
	@mkdir -p build
	@$(INSTALL) $(VERSIONS) --editable ".[test]" $(WATCHED)
	@touch $(VENV)/.demo $(VENV)/.quick $@

# The same packages with the runtime of `make quick`, so that a fresh clone needs one build instead of two.
$(VENV)/.quick: pyproject.toml tests/constraints.txt | $(BIN)/maturin
	$(SAY) "Building the runtime and installing the packages of the tests that need no PyTorch (about four minutes on two cores)"
	@mkdir -p build
	@$(INSTALL) $(VERSIONS) --config-settings=build-args="--profile quick" --editable ".[test]" $(WATCHED)
	@touch $@

$(VENV)/.bench: $(VENV)/.demo
	$(SAY) "Installing OpenVINO and MNN for comparison"
	@mkdir -p build
	@$(INSTALL) --editable ".[bench]" $(WATCHED)
	@touch $@

$(VENV)/.models: $(VENV)/.bench
	$(SAY) "Installing PyTorch and other packages for the export of architectures (some minutes)"
	@mkdir -p build
	@$(INSTALL) --editable ".[bench,models]" $(WATCHED)
	@touch $@

build: $(VENV)/.demo ## install the compiler in .venv
	$(SAY) "Ready: try  $(BIN)/candlec --help"

demo: $(VENV)/.demo ## compile a trained model, run it, check it against onnxruntime
	@$(BIN)/python tools/demo.py

bench: $(VENV)/.bench ## time every zoo model beside onnxruntime, OpenVINO and MNN
	$(SAY) "Timing the models of $(ZOO) beside onnxruntime, OpenVINO and MNN"
	$(BIN)/candlec bench --zoo $(ZOO) $(BENCH)

bench-models: $(VENV)/.models ## the same for the architectures of models/, after exporting them
	$(SAY) "Timing the architectures of models/ beside onnxruntime, OpenVINO and MNN"
	$(BIN)/python -m models --folder build/models
	$(BIN)/candlec bench --zoo build/models $(BENCH)

bench-small: $(VENV)/.models ## the same for the small models of models/small/, after exporting them
	$(SAY) "Timing the small models of models/small/ beside onnxruntime, OpenVINO and MNN"
	$(BIN)/python -m models --group small --folder build/small
	$(BIN)/candlec bench --zoo build/small $(BENCH)

bench-kernels: $(VENV)/.bench ## the same for the operators of benchmarks/suite
	$(SAY) "Timing the operators of benchmarks/suite beside onnxruntime, OpenVINO and MNN"
	$(BIN)/python benchmarks/kernels.py --folder build/kernels
	$(BIN)/candlec bench --zoo build/kernels $(BENCH)

bench-startup: $(VENV)/.demo ## time the start of the commands in new processes (some minutes)
	$(SAY) "Timing the start of the verbs"
	$(BIN)/python benchmarks/startup.py

# Two commits, or folders with a checkout and its extension. `.` is this checkout.
OLD ?= HEAD
NEW ?= .
bench-commits: $(VENV)/.demo ## compare the speed of two commits or checkouts: make bench-commits OLD=main NEW=.
	$(SAY) "Timing the models of $(ZOO) with the compilers of $(OLD) and $(NEW)"
	$(BIN)/python -m benchmarks.commits $(OLD) $(NEW) --zoo $(ZOO) $(COMMITS)

FAMILIES := --zoo build/families --baseline models/families/zoo.toml --results build/families/results.jsonl
zoo: $(VENV)/.models ## compare hundreds of models with onnxruntime, after exporting them
	$(SAY) "Exporting the models of models/families"
	$(BIN)/python -m models.families --folder build/families
	$(SAY) "Checking them against onnxruntime, with fixed and with symbolic shapes"
	$(BIN)/candlec zoo run $(FAMILIES) --both
	$(SAY) "Checking the models of $(ZOO)"
	$(BIN)/candlec zoo run --zoo $(ZOO) $(KNOWN) --both

HUB := --zoo build/hub --baseline models/hub/zoo.toml --results build/hub/results.jsonl
zoo-hub: $(VENV)/.dev ## the same for graphs as model hubs serve them, with onnxruntime's own operators; HUB_MODELS=--all builds all
	$(SAY) "Building models with mobius-onnx"
	$(BIN)/python -m models.hub --folder build/hub $(HUB_MODELS)
	$(SAY) "Checking them against onnxruntime, with fixed and with symbolic shapes"
	$(BIN)/candlec zoo run $(HUB) --both

# The facts of the slice hold for the versions of packages in models/families/constraints.txt.
SLICE := --zoo build/families --only @models/families/slice.txt --facts models/families/facts.toml
zoo-slice: $(VENV)/.models ## the same for models that cover every operator, rule and kernel form, with their facts
	$(SAY) "Exporting the models of models/families/slice.txt"
	$(BIN)/python -m models.families --folder build/families $$(cat models/families/slice.txt)
	$(SAY) "Checking them against onnxruntime and against their facts"
	$(BIN)/candlec zoo run $(SLICE) --both

bless-slice: $(VENV)/.models ## choose these models again from the results of `make zoo`, and record their facts
	$(BIN)/candlec zoo slice build/families/results.jsonl --overhead 5 >models/families/slice.txt
	rm -f models/families/facts.toml
	for level in avx2 ""; do \
		if [ -n "$$level" ]; then export CANDLE_PLAN_ISA=$$level; else unset CANDLE_PLAN_ISA; fi; \
		$(BIN)/candlec zoo update $(SLICE) || exit 1; \
	done

$(VENV)/.nvcc: $(BIN)/maturin pyproject.toml
	$(SAY) "Installing NVIDIA's compiler (it needs no GPU)"
	@mkdir -p build
	@$(INSTALL) --editable ".[cuda-build]" $(WATCHED)
	@touch $(VENV)/.demo $@

compiler/_runtime_cuda.abi3.so: $(VENV)/.nvcc $(KERNELS) tools/build_cuda.py
	$(SAY) "Building the module for CUDA (the first time about four minutes on two cores)"
	$(BIN)/python tools/build_cuda.py

cuda: compiler/_runtime_cuda.abi3.so ## build the extension for NVIDIA's GPUs; needs no GPU, driver or toolkit
	$(SAY) "Ready: try  $(BIN)/candlec run PLAN --device cuda  where there is a driver"

cuda-bundle: $(VENV)/.dev compiler/_runtime_cuda.abi3.so ## write the inputs of `make cuda-check` to build/cuda-check, for a machine with a GPU
	$(SAY) "Gathering the inputs of the checks on a GPU (the first export of the networks takes some minutes)"
	$(BIN)/python tools/cuda_bundle.py --zoo $(ZOO)

# One of the commands smoke, compare and tune; without it all three.
CALL ?=
cuda-check: ## check, time and profile plans on this machine's GPU, with the files of cuda-bundle; needs no Rust
	$(SAY) "Checking plans on the GPU"
	$(PYTHON) tools/cuda_check.py $(CALL)

# A process may have the former module loaded: `install` makes a new file, but `cp` would overwrite the one that is mapped.
compiler/_runtime_emulator.abi3.so: $(VENV)/.demo $(KERNELS)
	$(SAY) "Building the extension that runs GPU kernels on the CPU"
	$(EXTENSION) --release --package candle-plan-emulator
	install -m 755 runtime/target/release/lib_runtime_emulator.so $@

emulator: compiler/_runtime_emulator.abi3.so ## build the extension that runs GPU kernels on the CPU, for tests

# The loop of a changed operator or kernel. The next target that needs a module builds the optimized one again.
quick: $(VENV)/.quick ## build the changed runtime in seconds, for tests; small models run slower
	$(EXTENSION) --profile quick --package candle-plan-cpu
	@rm -f $(VENV)/.demo $(VENV)/.test $(VENV)/.dev
	install -m 755 runtime/target/quick/lib_runtime.so compiler/_runtime.abi3.so

quick-emulator: $(VENV)/.quick ## the same for the extension that runs GPU kernels on the CPU
	$(EXTENSION) --profile quick --package candle-plan-emulator
	install -m 755 runtime/target/quick/lib_runtime_emulator.so compiler/_runtime_emulator.abi3.so
	@touch --date=@0 compiler/_runtime_emulator.abi3.so

quick-cuda: $(VENV)/.nvcc ## the same for the extension for NVIDIA's GPUs
	$(BIN)/python tools/build_cuda.py quick
	@touch --date=@0 compiler/_runtime_cuda.abi3.so

# Makes two targets at the same time, and shows the output of the first one at the end. `--jobs` would limit cargo: its job
# server would let each target run one compiler at a time.
beside = $(MAKE) --no-print-directory $(1) >build/$(1).log 2>&1 & first=$$!; $(MAKE) --no-print-directory $(2); second=$$?; \
	wait $$first; first=$$?; cat build/$(1).log; exit $$((first | second))
check: format ## all checks of CI: format, lints, types, every test
	@mkdir -p build
	@$(call beside,lint,$(VENV)/.dev) # pip waits for the network and the disk
	@$(call beside,types,test-rust) # the last crates leave a processor idle
	@$(MAKE) --no-print-directory chromium test-python test-levels test-lowest test-newest test-processors lint-cuda

$(BIN)/ruff: $(BIN)/maturin tests/constraints.txt
	$(SAY) "Installing the linters"
	$(BIN)/pip install --quiet --disable-pip-version-check $(VERSIONS) ruff "codespell[toml]"
	@touch $@

format: $(BIN)/ruff
	$(SAY) "Format"
	$(BIN)/ruff format --check .
	@rustfmt --edition 2021 --check $(RUST_FILES)
	cargo fmt --check --manifest-path tests/standin/candle/Cargo.toml -- --config-path runtime

reformat: $(BIN)/ruff ## format every Python and Rust file
	$(BIN)/ruff format .
	@rustfmt --edition 2021 $(RUST_FILES)

lint: $(BIN)/ruff
	$(SAY) "Lints"
	$(BIN)/ruff check .
	$(BIN)/codespell
	cd runtime && cargo clippy --release --workspace --all-targets -- -D warnings
	cd runtime && RUSTDOCFLAGS="-D warnings" cargo doc --locked --release --no-deps --package candle-plan

lint-cuda: compiler/_runtime_cuda.abi3.so
	$(SAY) "Lints of the code for Candle's tensors on GPUs"
	$(BIN)/python -m tests.standin.program clippy

types: $(VENV)/.dev
	$(SAY) "Types"
	$(BIN)/mypy

generate: quick $(BIN)/ruff ## write the generated files: from the Rust source, and pages of docs/ from the code's tables
	$(SAY) "Generating"
	$(BIN)/python tools/generate.py

conformance: $(VENV)/.dev ## the backend tests of the onnx package: how many pass, as tests/onnx_backend/failing.toml says
	$(SAY) "Backend tests of the onnx package, and again with 3-D operators lowered"
	$(BIN)/python -m tests.onnx_backend.ledger
	$(BIN)/python -m tests.onnx_backend.ledger --lower-3d
	$(BIN)/python -m tests.onnx_backend.scoreboard build/scoreboard

bless: $(VENV)/.dev ## accept the present output as the expected output of the golden tests, and the present facts of models
	$(SAY) "Blessing goldens and facts: review the difference before you commit it"
	BLESS=1 $(BIN)/python -m pytest -q tests/golden
	@levels=$$($(BIN)/python -c 'from compiler.runtime.processor import levels; print(*levels())') || exit 1; for level in $$levels; do \
		export CANDLE_PLAN_ISA=$$level; \
		$(BIN)/candlec zoo update --zoo models --facts models/facts.toml || exit 1; \
		[ -z "$(OTHERS)" ] || $(BIN)/candlec zoo update --zoo $(OTHERS) --measures tests/trained/measures.toml --facts tests/trained/facts.toml || exit 1; \
	done

fuzz: $(VENV)/.dev ## change files and plans at random, a few hundred thousand times; a crash fails
	$(SAY) "Fuzzing"
	FUZZ=50 $(PYTEST) tests/test_fuzz.py

wheel: $(BIN)/maturin ## build a wheel of this checkout, optimized as a whole, in build/wheels
	$(SAY) "Building the wheel"
	$(BIN)/maturin build --profile wheel --strip --out build/wheels

include $(addprefix $(dir $(firstword $(MAKEFILE_LIST)))tools/,tests.mk release.mk)

clean: ## remove the environment and everything built
	rm -rf $(VENV) build runtime/target compiler/_runtime*.so
