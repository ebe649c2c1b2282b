"""The order of a compilation, on one page: load ▸ verify ▸ passes ▸ lower ▸ write."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from compiler import lower
from compiler.load import Loaded, Source, load
from compiler.options import Options
from compiler.origin import Origin
from compiler.plan import Plan, Pool, ops
from compiler.plan.write import constant_of, write

__all__ = ["compile"]


def compile(source: Source, options: Options | None = None) -> Plan:
    """Compiles a model.

    Raises:
        CompileError: the model is refused.
    """
    options = options or Options()
    loaded = load(source)
    block, pool = lower.lower(loaded.model)
    return _plan(loaded, block, pool, options)


def _plan(loaded: Loaded, block: ops.Block, pool: Pool, options: Options) -> Plan:
    plan = ops.Plan(
        constants=[constant_of(array) for array in pool.constants],
        main=block,
        metadata=_metadata(loaded.model),
        origins=[_origin(origin, options) for origin in pool.origins],
        passes=[],
        source_sha256=loaded.sha256,
    )
    return Plan(write(plan, pool.constants))


def _metadata(model: ir.Model) -> dict[str, str]:
    return {key: value for key, value in model.metadata_props.items() if not key.startswith("pkg.")}


def _origin(origin: Origin, options: Options) -> ops.Origin:
    if options.strip_origins:
        origin = replace(origin, module="", source="")
    return ops.Origin(module=origin.module, nodes=list(origin.nodes), source=origin.source)
