# The packages of a release, in build/dist (docs/releasing.md). This file is a part of the Makefile.
# The wheels are built from the files of the source distribution. These files have the time of their extraction, because cargo
# compares times. Cargo keeps the versions of its lock file, and removes packages that only crates outside the distribution
# need, so `--locked` would fail. maturin runs zig, which links for an old glibc.

.PHONY: build/source wheels sdist crates embedding

$(VENV)/.zig: $(BIN)/maturin
	$(BIN)/pip install --quiet --disable-pip-version-check "maturin[zig]>=1.9,<2"
	@touch $@

build/source: $(BIN)/maturin
	$(SAY) "Building the source distribution"
	@rm -rf build/dist/*.tar.gz build/source
	$(BIN)/maturin sdist --out build/dist
	@mkdir -p build/source && tar -xzmf build/dist/*.tar.gz -C build/source --strip-components 1

MANYLINUX = cd build/source && PATH="$(CURDIR)/$(BIN):$$PATH" CARGO_TARGET_DIR=$(CURDIR)/runtime/target $(CURDIR)/$(BIN)/maturin build \
	--profile wheel --strip --zig --compatibility manylinux_2_17 --out ../dist --target
wheels: arm-tools build/source $(VENV)/.zig ## build the wheels of a release for Linux on x86-64 and ARM, and try them (an hour)
	@rm -f build/dist/*.whl
	$(SAY) "Building the wheel for x86-64"
	$(MANYLINUX) x86_64-unknown-linux-gnu
	$(SAY) "Building the wheel for ARM"
	export RUSTC=/usr/bin/rustc; $(MANYLINUX) $(ARM)
	$(SAY) "The demonstration with the wheel for x86-64, without Rust"
	$(BIN)/python tools/wheels.py try build/dist/*_x86_64.whl
	$(SAY) "The demonstration with the wheel for ARM, in the emulator"
	$(BIN)/python tools/wheels.py emulate build/dist/*_aarch64.whl
	@$(BIN)/python tools/wheels.py sizes build/dist/*

sdist: build/source ## build the source distribution, install it with pip in a new environment, and run the demonstration
	$(SAY) "Installing the source distribution"
	CARGO_TARGET_DIR=$(CURDIR)/runtime/target $(BIN)/python tools/wheels.py try build/dist/*.tar.gz

# The crate of plans, and the crates that it needs.
CRATES := candle-plan candle-plan-derive candle-plan-descriptors candle-plan-device candle-plan-kernels candle-plan-memory
crates: ## package the crates for Rust programs in build/crates/package, and compile the packages
	cd runtime && cargo package --locked --target-dir ../build/crates $(CRATES:%=--package %)

# The program has a workspace of its own. It gets the versions of the packages that the tests use.
EMBEDDING := --release --manifest-path examples/embedding/Cargo.toml --target-dir build/embedding
embedding: ## build examples/embedding with all operators and without the optional ones, and print the sizes (a quarter of an hour)
	cp runtime/Cargo.lock examples/embedding/Cargo.lock
	$(SAY) "Building the program with all operators"
	cargo build $(EMBEDDING)
	install build/embedding/release/embedding build/embedding/with-all-operators
	$(SAY) "Building the program without the optional operators"
	cargo build $(EMBEDDING) --no-default-features
	install build/embedding/release/embedding build/embedding/without-optional-operators
	@stat --format "%s %n" build/embedding/with* | awk '{ printf "%5.1f MB  %s\n", $$1 / 1e6, $$2 }'
