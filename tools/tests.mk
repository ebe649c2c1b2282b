# The targets of the tests.

test: test-rust test-python test-levels ## every test, Rust and Python
	$(SAY) "Rust tests, once more"
	@grep -E '^ *Summary' build/rust-tests.log

$(CURDIR)/$(BIN)/cargo-nextest: $(BIN)/maturin
	$(SAY) "Installing the runner of the Rust tests (once, some minutes)"
	@mkdir -p build
	@cargo install --locked --root $(VENV) cargo-nextest --version 0.9.143 $(WATCHED)

# The tests of candle-plan run little of its code. To compile it without optimization takes half of the time.
RUST_TESTS := --release --workspace --config profile.release.package.candle-plan.opt-level=0
test-rust: $(VENV)/.demo $(NEXTEST)
	$(SAY) "Rust tests"
	@mkdir -p build
	cd runtime && $(NEXTEST) nextest run --no-fail-fast $(RUST_TESTS) 2>&1 | tee ../build/rust-tests.log
	cd runtime && cargo test --doc --release --workspace

test-python: $(VENV)/.dev compiler/_runtime_emulator.abi3.so compiler/_runtime_cuda.abi3.so
	$(SAY) "Python tests"
	$(PYTEST)

# Tests of GPUs' kernels and tools, of layers of PyTorch, and of trained models, and those that take long.
SLOW := accepted dynamo layers onnx_backend standin trained test_cuda.py test_cuda_check.py test_device_arrays.py \
	test_emulator.py test_convolution_constants.py test_convolution_forms.py test_fuzz.py test_gpu_docs.py \
	test_gpu_process.py test_gpu_report.py test_gpu_tools.py
FAST := -m "not slow" $(SLOW:%=--ignore=tests/%)
# The tests with other versions of dependencies: those whose results a dependency in Python can change, because it reads models,
# infers shapes, holds graphs, computes or converts arrays, reads command lines or writes texts and files. A plan says all that
# a run does: where versions give equal plans, the runs are equal too. These tests of test-fast are left out, and those of the
# trained models are added, with the facts of their plans:
# - Tests that need PyTorch: dynamo, layers, and tests in other files, which are skipped.
# - Tests of the kernels and tools for GPUs: standin, the files test_cuda*.py, test_device*.py, test_emulator.py and
#   test_gpu_*.py. No dependency in Python takes part in them.
# - onnx_backend: its ledger and its number of tests are those of the version of onnx in tests/constraints.txt.
# - Tests of the runtime with plans that other tests make too: its memory, layouts, threads, states and times, and how processes
#   run, crash and end.
# - Searches at random, whose steps the tests of each pass and operator make too: test_any_order.py, test_fuzz.py,
#   test_mutated_models.py.
# - Tests of the source, of Rust, of tools, of packages, of releases and of the action for GitHub.
# - contrib, volumes: formulas of standard operators, whose own tests are in tests/lower and tests/passes.
# - generation, on_ray: tests of whole programs.
# - estimators: the packages that convert its models do not support every version of onnx.
SAME_RESULTS := contrib generation on_ray volumes cli/test_bench.py cli/test_bisect.py cli/test_bisect_changes.py cli/test_streams.py cli/test_zoo_runner.py cli/test_zoo_times.py \
	estimators \
	passes/test_any_order.py state/test_devices.py state/test_streams.py test_allocator.py test_alternatives.py \
	test_architecture.py test_arm_loops.py test_bench.py test_bisect.py test_build_cuda.py test_ci_page.py test_commits.py \
	test_devices.py test_duplicates.py test_ending.py test_expectation.py test_github_action.py test_gpu_faults.py \
	test_gpu_refusals.py test_interrupt.py test_kernel_parameters.py test_layouts.py test_mutated_models.py \
	test_operator_tables.py test_packaging.py test_peak.py test_processes.py test_release.py test_residuals.py test_rust_manifests.py \
	test_rust_modules.py test_rust_package.py test_rust_surface.py test_scratch.py test_sharing.py test_stated_memory.py test_unsafe_code.py test_vector_code.py \
	searches zoo/test_breaking.py page/test_results_in_browser.py page/test_report_in_browser.py
# The same of trained models: runs with two threads, layers with onnxruntime's inputs, and the bytes of plans that two processes
# write, which tests/golden compares with a file.
SAME_RUNS := $(addprefix --deselect=tests/trained/test_zoo.py::test_,plans_are_the_same_bytes quantized_layers threads_change)
# Of the tests of each operator and pass, the first case of each function runs: the other cases differ in their data.
OTHER_VERSIONS := $(filter-out --ignore=tests/trained,$(FAST)) $(SAME_RESULTS:%=--ignore=tests/%) $(SAME_RUNS) \
	--first-cases tests/lower --first-cases tests/passes
test-fast: $(VENV)/.test ## the Python tests that need neither PyTorch nor a GPU extension (some minutes)
	$(SAY) "Python tests without PyTorch and GPUs"
	WITHOUT_TORCH=1 $(PYTEST) $(FAST)

# The Rust tests of the kernels run at every level. These tests show that plans use the kernels of a lower level correctly.
test-levels: $(VENV)/.dev $(NEXTEST) ## the tests of operators and models with this processor's lower instruction sets
	@levels=$$($(BIN)/python -c 'from compiler.runtime.processor import levels; print(*levels()[:-1])') || exit 1; for level in $$levels; do \
		printf '\033[1m── %s  %s\033[0m\n' "$$(date +%T)" "Tests at CANDLE_PLAN_ISA=$$level"; export CANDLE_PLAN_ISA=$$level; \
		(cd runtime && $(NEXTEST) nextest run --no-fail-fast --status-level fail $(RUST_TESTS) -E 'package(candle-plan)') || exit 1; \
		$(PYTEST) tests/lower tests/trained/test_zoo.py --first-cases tests/lower -k 'not unpinned and not same_bytes' || exit 1; \
	done

test-lowest: $(VENV)/.demo ## the tests that versions of packages can change, with the lowest ones that pyproject.toml allows
	$(SAY) "Tests with the lowest versions, in build/lowest"
	$(BIN)/python tools/versions.py lowest $(OTHER_VERSIONS)

test-newest: $(VENV)/.demo ## the same with the newest versions
	$(SAY) "Tests with the newest versions, in build/newest"
	$(BIN)/python tools/versions.py newest $(OTHER_VERSIONS)

# The targets install qemu, which emulates processors, if they may.
QEMU_HELP := qemu-x86_64-static is not installed, and could not be: as root, apt-get install qemu-user-static
test-processors: ## some tests on other x86-64 processors, which qemu emulates
	$(SAY) "Tests on other processors"
	@mkdir -p build
	@command -v qemu-x86_64-static >/dev/null || { apt-get update && apt-get install -y qemu-user-static; } >build/qemu.log 2>&1 || true
	@if command -v qemu-x86_64-static >/dev/null; then $(MAKE) --no-print-directory test-emulated; else echo "Skipped: $(QEMU_HELP)"; fi

test-emulated: $(VENV)/.dev $(NEXTEST)
	cd runtime && $(NEXTEST) nextest list $(RUST_TESTS) --message-format json >../build/rust-tests.json
	$(PYTEST) tests/processors.py

# The kernels for ARM, with Debian's compiler and an emulator. Not a part of `make check`: it takes too long.
ARM      := aarch64-unknown-linux-gnu
ARM_DEBS := rustc-web libstd-rust-web-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
ARM_HELP := as root on Debian, dpkg --add-architecture arm64 && apt-get update && apt-get install $(ARM_DEBS)
# The longest in the emulator: the first 13 of them were stopped after 15 seconds, the others after 100.
ARM_SLOW := convolution::tests::depthwise_windows_of_every_tile \
	convolution::tests::dilated::dilated_shapes_of_several_parts_and_tasks \
	convolution::tests::dilated::random_dilated_windows \
	convolution::tests::positions::weights_packed_for_few_positions_compute_many \
	convolution::tests::positions::windows_of_few_positions convolution::tests::random_shapes \
	convolution::tests::random_shapes_of_three_by_three convolution::tests::random_windows_along_a_line \
	convolution::tests::residuals_are_added_before_outputs_are_clamped \
	convolution::tests::shapes_of_several_parts_and_tasks \
	convolution::transposed::tests::random_shapes_of_every_stride_and_kernel \
	convolution::transposed::tests::random_shapes_of_few_channels \
	convolution::transposed::tests::results_of_several_tasks_and_pieces gemm::tests::products_of_all_shapes \
	vector::tests::functions_are_within_two_ulps
empty :=
space := $(empty) $(empty)
arm-tools:
	@mkdir -p build
	@test -d /usr/lib/rustlib/$(ARM) && command -v aarch64-linux-gnu-gcc qemu-aarch64-static >/dev/null || \
		{ dpkg --add-architecture arm64 && apt-get update && apt-get install -y --no-install-recommends $(ARM_DEBS); } >build/arm.log 2>&1 || \
		{ echo "A compiler for ARM or its emulator is missing, and could not be installed: $(ARM_HELP)"; exit 1; }

test-arm: arm-tools $(NEXTEST) ## the tests of the kernels for ARM, which qemu emulates (some minutes)
	$(SAY) "Tests of the kernels for ARM"
	cd runtime && RUSTC=/usr/bin/rustc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static \
		$(NEXTEST) nextest run --no-fail-fast --release --target $(ARM) --package candle-plan-kernels \
		-E 'not test(/^($(subst $(space),|,$(strip $(ARM_SLOW))))$$/)'
	$(PYTHON) tools/arm_loops.py $$(ls -t runtime/target/$(ARM)/release/deps/candle_plan_kernels-* | grep -v '\.' | head -1)

test-page: $(VENV)/.test chromium ## the tests of the HTML pages, in Chromium
	$(SAY) "Tests of the HTML pages, in Chromium"
	$(BIN)/python -m pytest -q tests/page tests/cli/test_zoo_page.py

# If Chromium can be neither found nor installed, the tests that need it say that they are skipped.
chromium:
	@mkdir -p build
	@command -v chromium >/dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium; } >build/chromium.log 2>&1 || true

# AddressSanitizer also checks the C++ of the emulator's kernels.
sanitize: $(NEXTEST) ## the Rust tests of kernels, devices and plans under AddressSanitizer, on Linux (some minutes)
	$(SAY) "Rust tests of kernels, devices and plans, on the emulator too, under AddressSanitizer"
	cd runtime && RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CXXFLAGS=-fsanitize=address ASAN_OPTIONS=detect_leaks=0 \
		$(NEXTEST) nextest run --no-fail-fast --package candle-plan-kernels --package candle-plan-memory --package candle-plan-device --package candle-plan-device-emulator --package candle-plan \
		--target "$$(rustc -vV | sed -n 's/^host: //p')" --target-dir target/sanitize
