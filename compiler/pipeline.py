"""The order of a compilation: load ▸ verify ▸ passes ▸ lower ▸ write."""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
import gc
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx_ir as ir

from compiler import lower
from compiler.errors import CompileError, Diagnostic, did_you_mean
from compiler.frontend.invariants import violations
from compiler.frontend.load import Changed, Source, load_model
from compiler.frontend.weights import hold_weights
from compiler.ir import origin
from compiler.ir.graph import nodes_of
from compiler.ir.origin import Origin
from compiler.options import Options
from compiler.passes.absorb_transposes import absorb_transposes
from compiler.passes.cancel_transposes import cancel_transposes
from compiler.passes.check_nodes import check_nodes
from compiler.passes.check_outputs import check_outputs
from compiler.passes.check_types import check_types
from compiler.passes.drop_dead_nodes import drop_dead_nodes
from compiler.passes.drop_identities import drop_identities
from compiler.passes.drop_noops import drop_noops
from compiler.passes.expand_batch_norm import expand_batch_norm
from compiler.passes.expand_einsum import expand_einsum
from compiler.passes.expand_functions import expand_functions, refused_expansions
from compiler.passes.fold_batch_norm import fold_batch_norm
from compiler.passes.fold_biases import fold_biases
from compiler.passes.fold_constants import fold_constants
from compiler.passes.fold_pads import fold_pads
from compiler.passes.fold_slices import fold_slices
from compiler.passes.fold_weight_norm import fold_weight_norm
from compiler.passes.fuse_elementwise import fuse_elementwise
from compiler.passes.fuse_epilogues import fuse_epilogues
from compiler.passes.fuse_low_bit_products import fuse_low_bit_products
from compiler.passes.fuse_quantization import fuse_quantization
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.inline_branches import inline_branches
from compiler.passes.inline_functions import inline_functions
from compiler.passes.join_slices import join_slices
from compiler.passes.lower_3d_col2im import lower_3d_col2im
from compiler.passes.lower_3d_conv import lower_3d_conv
from compiler.passes.lower_3d_conv_transpose import lower_3d_conv_transpose
from compiler.passes.lower_3d_grid_sample import lower_3d_grid_sample
from compiler.passes.lower_3d_norm import lower_3d_norm
from compiler.passes.lower_3d_pool import lower_3d_pool
from compiler.passes.lower_3d_resize import lower_3d_resize
from compiler.passes.lower_upsample import lower_upsample
from compiler.passes.merge_duplicates import merge_duplicates
from compiler.passes.merge_reshapes import merge_reshapes
from compiler.passes.merge_slices import merge_slices
from compiler.passes.move_shapes_to_inputs import move_shapes_to_inputs
from compiler.passes.normalize_reductions import normalize_reductions
from compiler.passes.pin_defaults import pin_defaults
from compiler.passes.pin_dims import pin_dims
from compiler.passes.raise_first_versions import raise_first_versions
from compiler.passes.raise_legacy import raise_legacy
from compiler.passes.raise_transposes import raise_transposes
from compiler.passes.read_sequences_first import read_sequences_first
from compiler.passes.recognize_activations import recognize_activations
from compiler.passes.recognize_attention import recognize_attention
from compiler.passes.recognize_gather import recognize_gather
from compiler.passes.recognize_gelu import recognize_gelu
from compiler.passes.recognize_group_norm import recognize_group_norm
from compiler.passes.recognize_interpolate import recognize_interpolate
from compiler.passes.recognize_layer_norm import recognize_layer_norm
from compiler.passes.recognize_one_hot import recognize_one_hot
from compiler.passes.recognize_repeat import recognize_repeat
from compiler.passes.recognize_rms_norm import recognize_rms_norm
from compiler.passes.recognize_rotary_embedding import recognize_rotary_embedding
from compiler.passes.recognize_softmax import recognize_softmax
from compiler.passes.reject_3d import reject_3d
from compiler.passes.sort_nodes import sort_nodes
from compiler.passes.split_sequences import split_sequences
from compiler.passes.split_slices import split_slices
from compiler.passes.unflatten_gemm import unflatten_gemm
from compiler.plan import Plan, state
from compiler.plan.stored import StoredPlan, plan_of
from compiler.plan.write import Part, write
from compiler.rewrite.facts import missing_facts
from compiler.rewrite.phase import Phase
from compiler.rewrite.report import Pass, PassReport
from compiler.weight_passes import Narrowing, Price, keeping, replacing

if TYPE_CHECKING:
    from compiler.frontend.held import Held

__all__ = ["LARGE", "compile", "compile_stored", "current_name", "optimize", "passes"]

LARGE = 1 << 30
"""The largest plan that `compile_stored` keeps in memory, in bytes."""

_FORMER_NAMES = {"keep_reduced_axes": "normalize_reductions", "read_sizes": "move_shapes_to_inputs"}
"""Deprecated name of a pass → its present name."""

_MERGE = [merge_duplicates, drop_dead_nodes]
"""The passes of a phase whose other passes need a value with one reader, or make equal and unused nodes."""
_FOLD_INDICES = fold_constants(lower.evaluate, only_indices=True)


def passes(options: Options) -> list[Pass]:
    """Every pass, in order.

    The `needed` passes always run. The options choose among the others. `check_nodes` runs before the optional passes,
    because they may hide an invalid node. If none of them runs, the lowering finds the node.
    """
    return [step for phase in _phases(options) for step in phase.passes]


def _phases(options: Options) -> list[Phase]:
    """All passes, in phases. A pass outside a `Phase` becomes a phase of its own, which runs once."""
    steps = [*_needed(options), check_nodes(lower.refusals), *_simplifying(), *_recognizing(), *_fusing(options)]
    return [step if isinstance(step, Phase) else Phase(step.name, [step]) for step in steps]


def _needed(options: Options) -> list[Pass | Phase]:
    """The passes that translate any opset, functions and branches to operators that a plan supports."""
    return [
        pin_defaults,
        pin_dims(options.dims),
        inline_functions,
        sort_nodes,
        *replacing(options),  # when the readers of all weights are known
        raise_first_versions,
        infer_shapes,  # check_types and raise_legacy need types
        check_types,
        raise_legacy,
        # Bodies of functions have branches, and branches have nodes to expand. Each of them makes more shapes known.
        Phase(
            "expand_bodies",
            [
                _FOLD_INDICES,
                inline_branches,
                infer_shapes,
                *([] if options.lower_3d else [reject_3d]),
                expand_functions(lower.can_lower, lower.node_refusals),
            ],
        ),
        *_lowering_3d(options),
        check_outputs,
        lower_upsample,
    ]


def _lowering_3d(options: Options) -> list[Pass | Phase]:
    """The passes that the option `lower_3d` asks for. They read shapes, which the passes before make known."""
    if not options.lower_3d:
        return []
    first = [lower_3d_norm, lower_3d_conv, lower_3d_conv_transpose, lower_3d_pool]
    return [*first, lower_3d_resize, lower_3d_grid_sample, lower_3d_col2im, reject_3d]


def _simplifying() -> list[Pass | Phase]:
    """The passes that make operators fewer and simpler."""
    folds = [fold_biases(lower.evaluate), fuse_quantization(lower.evaluate)]
    return [
        # Casts of constants and split sequences make more shapes known. Later, fused nodes would lose their shapes.
        Phase("find_shapes", [drop_identities, _FOLD_INDICES, split_sequences, infer_shapes]),
        # Before constant folding, which dequantizes weights, and computes norms of weights in single precision.
        Phase("fold_weights", [*folds, fuse_low_bit_products, fold_weight_norm(lower.evaluate)]),
        fold_constants(lower.evaluate),
        normalize_reductions,
        move_shapes_to_inputs,
        Phase("simplify", [*_MERGE, drop_noops, join_slices, merge_slices]),
    ]


def _recognizing() -> list[Pass | Phase]:
    """The passes that replace groups of elementary operators with one operator, and remove transposes."""
    return [
        recognize_gather,
        recognize_one_hot,
        recognize_layer_norm,  # before transposes move into its pattern
        recognize_rms_norm,
        recognize_group_norm,
        recognize_softmax,
        recognize_rotary_embedding,  # attention can absorb its transposes
        expand_einsum,
        recognize_attention,
        recognize_repeat,  # before reshapes are merged
        recognize_gelu,
        recognize_activations,
        unflatten_gemm,  # before its reshapes are merged with others
        # The two run in turn: attention leaves transposes to cancel, and a product absorbs those that move down to it.
        Phase("move_transposes", [absorb_transposes, cancel_transposes]),
        split_slices,
        recognize_interpolate,  # of operators that transposes separated
        raise_transposes,  # those that remain
        merge_reshapes,
    ]


def _fusing(options: Options) -> list[Pass | Phase]:
    """The passes that fuse operators into fewer and larger steps."""
    narrowing = Narrowing.of(options)
    return [
        *keeping(options),
        fold_pads,
        fold_slices,
        fold_batch_norm,
        expand_batch_norm,
        *narrowing.convolutions,
        Phase(
            "fuse",
            [
                *_MERGE,
                *narrowing.matrices,
                fuse_epilogues(lower.takes_epilogue, lower.is_elementwise),
                fuse_elementwise(lower.is_elementwise),
            ],
        ),
        read_sequences_first,  # no later pass adds readers
    ]


def compile(source: Source | Held | Changed, options: Options | None = None) -> Plan:
    """Compiles a model into a plan.

    The model is a path, the bytes of a file, or an `onnx.ModelProto`, `onnx_ir.Model`, `torch.onnx.ONNXProgram` or
    `torch.export.ExportedProgram`. The function does not change the model. `options` sets sizes, and chooses the
    passes.

    Raises:
        CompileError: the model is refused.
        ExportError: PyTorch cannot translate the `ExportedProgram`.
        DeviceError: the processor lacks the instruction set that the environment variable `CANDLE_PLAN_ISA` names.
    """
    return plan_of(_compiled(source, options))


def compile_stored(source: Source | Held | Changed, options: Options | None = None) -> Plan:
    """Compiles a model as `compile` does. A plan of more than `LARGE` bytes is in a temporary file.

    It then takes no memory, except in sessions.

    Raises:
        CompileError, ExportError, DeviceError: as `compile`.
        OSError: the temporary file cannot be written.
    """
    plan = plan_of(_compiled(source, options), LARGE)
    if isinstance(plan, StoredPlan):
        gc.collect()  # the graph of the model contains cycles, and refers to weights
    return plan


def _compiled(source: Source | Held | Changed, options: Options | None) -> list[Part]:
    """The parts of the file of a model's plan."""
    options = Options() if options is None else options
    if not isinstance(options, Options):
        raise TypeError(f"options are compiler.Options(…), not {type(options).__name__}")
    wrong: list[Diagnostic] = []
    loaded = load_model(source, wrong, strict=options.strict)
    if loaded.warnings and options.on_pass:
        options.on_pass(PassReport("load", warnings=[*loaded.warnings]))
    if wrong:
        raise _broken(loaded.model, wrong)
    weights = hold_weights(loaded.model) if options.keep_weights else {}
    price = Price(options)
    done = optimize(loaded.model, price.options)
    try:
        block, pool = lower.lower(loaded.model, weights=weights)
    except CompileError as error:
        raise _completed(loaded.model, error) from None
    origins = [Origin(nodes=origin.nodes) for origin in pool.origins] if options.strip_origins else pool.origins
    stated = loaded.model.metadata_props
    kept = {key: stated[key] for key in options.keep_metadata if key in stated}
    return write(
        block,
        pool,
        origins,
        passes=done,
        source_sha256=loaded.sha256,
        metadata={**kept, **price.metadata, **options.metadata},
        max_memory=options.max_memory,
        state=[] if options.state is None else state.pairs(block, options.state),
    )


def optimize(model: ir.Model, options: Options) -> list[str]:
    """Run the passes that the options choose on a model, and return their names.

    Raises:
        CompileError: the compiler refuses the model. After a pass refuses a node, the other needed passes and the
            lowering still run, and the error holds all of their findings.
    """
    phases = _chosen(options)
    facts: set[str] = set()
    refused: list[Diagnostic] = []
    for step, report in _runs(phases, model, refused, counts=bool(options.on_pass or options.on_model)):
        known = {each.origin for each in refused if each.origin}
        refused += [each for each in report.refused if each.origin not in known]
        if options.on_pass:
            options.on_pass(report)
        if options.on_model:
            options.on_model(report, model)
        facts |= step.ensures
        # The loaded model is verified as soon as its nodes are sorted; results of passes are verified on demand.
        if (step is sort_nodes or options.verify_passes) and "sorted" in facts:
            _check(model, step, step is sort_nodes, refused)
    if refused:
        raise _completed(model, _refused(model, refused))
    return list(dict.fromkeys(step.name for phase in phases for step in phase.passes))


def _runs(
    phases: list[Phase], model: ir.Model, refused: list[Diagnostic], *, counts: bool
) -> Iterator[tuple[Pass, PassReport]]:
    """Runs the phases. After a pass refuses nodes, only the needed phases run."""
    done: set[Pass] = set()
    for phase in phases:
        if refused and not all(step.needed for step in phase.passes):
            return
        try:
            yield from phase.run(model, done, counts=counts)
        except CompileError as error:
            raise _broken(model, [*refused, *error.diagnostics]) from None


def _refused(model: ir.Model, found: list[Diagnostic]) -> CompileError:
    """The findings of passes and of the lowering. Nodes may be valid although the type of an output is wrong."""
    try:
        lower.lower(model, {each.origin for each in found if each.origin and each.code != "CC0404"})
    except CompileError as error:
        return CompileError([*found, *error.diagnostics], error.unchecked)
    return CompileError(found)


def _completed(model: ir.Model, error: CompileError) -> CompileError:
    """The error, with the reasons why expansions refuse the nodes whose bodies in the model contain refused nodes."""
    more = refused_expansions(model, {each.origin for each in error.diagnostics if each.origin})
    return CompileError([*more, *error.diagnostics], error.unchecked)


def _broken(model: ir.Model, found: list[Diagnostic]) -> CompileError:
    """The findings for a malformed graph, with the errors of operator types that need no pass."""
    places = {each.origin for each in found if each.origin}
    more = [*reject_3d.run(model).refused, *lower.unknown_operators(model)]
    unchecked = {origin.of(node) for node in nodes_of(model)} - places - {each.origin for each in more}
    return CompileError([*found, *(each for each in more if each.origin not in places)], unchecked)


def current_name(name: str) -> str:
    """Return the current name of a pass, for its current or its deprecated name."""
    if name in _FORMER_NAMES:
        message = f"the pass name {name} is deprecated: use {_FORMER_NAMES[name]}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
    return _FORMER_NAMES.get(name, name)


def _chosen(options: Options) -> list[Phase]:
    """The phases, with the passes that the options choose.

    Raises:
        CompileError: the options name an unknown pass, leave out a needed one, or miss a fact that a pass requires.
    """
    phases = _phases(options)
    all_passes = [step for phase in phases for step in phase.passes]
    names, needed = ({step.name for step in all_passes if step.needed >= least} for least in (False, True))
    asked = None if options.passes is None else [current_name(name) for name in options.passes]
    skipped = {current_name(name) for name in options.skip_passes}
    wrong = [
        Diagnostic("CC0503", f"there is no pass {name!r}", help=did_you_mean(name, sorted(names - needed)))
        for name in (*(asked or ()), *sorted(skipped))
        if name not in names
    ]
    wrong += [Diagnostic("CC0503", f"the pass {name} cannot be left out") for name in sorted(skipped & needed)]
    if wrong:
        raise CompileError(wrong)
    wanted = (names if asked is None else {*asked, "check_nodes"}) - skipped
    chosen = {step for step in all_passes if step.needed or (options.optimize and step.name in wanted)}
    phases = [phase for phase in (each.only(chosen) for each in phases) if phase.passes]
    if missing := missing_facts(phases, all_passes):
        raise CompileError(missing)
    return phases


def _check(model: ir.Model, step: Pass, is_input: bool, refused: list[Diagnostic]) -> None:
    """Verifies the model.

    Raises:
        CompileError: the model is invalid. The error blames the file if `is_input`, else the pass `step`.
    """
    found = violations(model)
    if found and not is_input:
        raise CompileError([Diagnostic("CC0501", f"after {step.name}: {item.message}", item.origin) for item in found])
    if found:
        raise _broken(model, [*refused, *found])
