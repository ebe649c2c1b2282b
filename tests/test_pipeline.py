"""The order of the passes, options, and the resulting plan."""

import importlib
import re
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
import compiler.passes
from compiler import CompileError, Options, pipeline
from compiler.errors import PAGES
from compiler.rewrite.phase import Phase
from compiler.rewrite.report import Pass

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
agraph (float[batch, 3] x) => (float[batch, 3] y, float[batch, 3] z) <float[1, 3] w = {1, 2, 3}> {
    a = Identity(x)
    y = Concat<axis=0>(a, w)
    z = Identity(a)
}
"""


def model():
    return onnx.parser.parse_model(MODEL)


@pytest.mark.parametrize("lower_3d", [False, True])
def test_earlier_passes_ensure_the_facts_that_a_pass_requires(lower_3d):
    facts = set()
    for step in pipeline.passes(Options(lower_3d=lower_3d)):
        assert step.requires <= facts, f"{step.name} requires {set(step.requires) - facts}"
        facts = (facts | step.ensures) - step.ends


def test_a_pass_without_what_it_requires_is_refused():
    with pytest.raises(CompileError) as error:
        compiler.compile(model(), Options(passes=["fold_constants", "fold_weight_norm"]))
    [found] = error.value.diagnostics
    assert found.code == "CC0505"
    assert found.message == "the pass fold_weight_norm requires 'stored weights', which does not hold when it runs"
    assert found.help == "choose a pass that ensures it: drop_identities"
    plan = compiler.compile(model(), Options(passes=["drop_identities", "fold_weight_norm"]))
    assert "fold_weight_norm" in plan.document["passes"]


@pytest.mark.parametrize("name", [step.name for step in pipeline.passes(Options()) if not step.needed])
def test_every_pass_can_be_chosen_with_what_it_requires(name):
    plan = compiler.compile(model(), Options(passes=["drop_identities", name], verify_passes=True))
    assert name in plan.document["passes"]


def test_a_fact_that_ended_is_required_in_vain(monkeypatch):
    late = Pass("late", lambda model, report: None, requires=frozenset({"stored weights", "tea"}))
    given = pipeline._fusing
    monkeypatch.setattr(pipeline, "_fusing", lambda options: [*given(options), late])
    with pytest.raises(CompileError) as error:
        compiler.compile(model())
    assert [(each.code, each.help) for each in error.value.diagnostics] == [
        ("CC0505", "choose a pass that ensures it: drop_identities"),
        ("CC0505", "leave out late"),
    ]


def nothing(name, requires=(), ensures=(), ends=()):
    """A pass that only states facts."""
    return Pass(name, lambda model, report: None, *map(frozenset, (requires, ensures, ends)))


HEAT = nothing("heat", ensures=["hot"])
DRINK = nothing("drink", requires=["hot"])
COOL = nothing("cool", ends=["hot"])
GULP = nothing("gulp", requires=["hot"], ends=["hot"])


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ([HEAT, DRINK, DRINK], []),
        ([HEAT, DRINK, COOL, DRINK], ["drink"]),  # the same pass once more
        ([HEAT, DRINK, COOL, HEAT, DRINK], []),
        ([HEAT, Phase("sip", [DRINK, COOL])], ["drink"]),  # in the second round
        ([HEAT, Phase("sip", [DRINK, COOL]), DRINK], ["drink"]),  # which is named once
        ([Phase("sip", [HEAT, DRINK, COOL])], []),
        ([Phase("sip", [HEAT, DRINK, COOL]), GULP], ["gulp"]),
        ([HEAT, GULP], []),  # which runs once
        ([HEAT, Phase("sip", [GULP])], []),
        ([HEAT, Phase("sip", [GULP, nothing("rest")])], ["gulp"]),
    ],
)
def test_facts_hold_at_every_run_of_a_pass(steps, refused, monkeypatch):
    given = pipeline._fusing
    monkeypatch.setattr(pipeline, "_fusing", lambda options: [*given(options), *steps])
    if not refused:
        compiler.compile(model())
        return
    with pytest.raises(CompileError) as error:
        compiler.compile(model())
    message = "the pass {} requires 'hot', which does not hold when it runs"
    assert [each.message for each in error.value.diagnostics] == [message.format(name) for name in refused]


def test_every_pass_has_its_place():
    """Every file in compiler/passes defines a `Pass`, or a function with the file's name that returns one."""
    asked = [
        Options(dims={"n": 1}, weights="int8", lower_3d=True),
        Options(weights="other.gguf"),
        *(Options(precision=name) for name in ("bf16", "f16")),
        Options(precision="int8", calibration=[{}]),
    ]
    placed = {step.name for options in asked for step in pipeline.passes(options)}
    for file in sorted(Path(compiler.passes.__path__[0]).glob("[!_]*.py")):
        module = importlib.import_module(f"compiler.passes.{file.stem}")
        made = [each.name for each in vars(module).values() if isinstance(each, Pass)]
        makes = file.stem in getattr(module, "__all__", ()) and callable(getattr(module, file.stem))
        assert made or makes, f"{file.name} defines no pass: move it to compiler/rewrite"
        assert module.__doc__, f"{file.name} needs a docstring, which `candlec compile --help` shows"
        for name in {*made, *([file.stem] if makes else ())}:
            assert name in placed, (
                f"the pass {name} has no place in compiler/pipeline.py: add it to one of the lists there"
            )


def test_every_optional_pass_has_a_test():
    tests = "".join(file.read_text() for file in (Path(__file__).parent / "passes").glob("*.py"))
    for step in pipeline.passes(Options()):
        if not step.needed and Path(compiler.passes.__path__[0], f"{step.name}.py").exists():
            assert re.search(rf"\b{step.name}\b", tests), f"no file of tests/passes tests the pass {step.name}"


def test_every_rule_states_its_rewrite():
    reports = []
    compiler.compile(model(), Options(on_pass=reports.append))
    formulas = {name: formula for report in reports for name, formula in report.rules.items()}
    assert formulas
    wrong = [name for name, formula in formulas.items() if "→" not in formula]
    assert not wrong, f"the first line of the docstring states the rewrite, as in `x + 0` → `x`: {wrong}"


def test_two_compiles_give_the_same_bytes():
    assert compiler.compile(model()).data == compiler.compile(model()).data


def test_needed_passes_run_always():
    names = [step.name for step in pipeline.passes(Options()) if step.needed]
    assert compiler.compile(model(), Options(optimize=False)).document["passes"] == list(dict.fromkeys(names))
    chosen = compiler.compile(model(), Options(passes=["drop_identities"])).document["passes"]
    assert "drop_identities" in chosen and "merge_duplicates" not in chosen


def test_nodes_are_checked_before_any_pass_hides_them():
    wrong = '<ir_version: 9, opset_import: ["": 20]> m (float[2] x) => (float[2] y) { y = Neg(x) z = Celu<foo = 1>(x) }'
    for options in (Options(), Options(passes=["drop_dead_nodes"]), Options(optimize=False)):
        with pytest.raises(CompileError) as error:
            compiler.compile(onnx.parser.parse_model(wrong), options)
        assert [item.code for item in error.value.diagnostics] == ["CC0203"]


def test_unknown_passes_are_refused():
    with pytest.raises(CompileError) as error:
        compiler.compile(model(), Options(passes=["make_tea", "sort_nodes"]))
    assert [item.code for item in error.value.diagnostics] == ["CC0503"]


@pytest.mark.parametrize(
    ("old", "new"), [("keep_reduced_axes", "normalize_reductions"), ("read_sizes", "move_shapes_to_inputs")]
)
def test_former_names_of_passes_choose_them(old, new):
    with pytest.warns(DeprecationWarning, match=f"the pass name {old} is deprecated: use {new}"):
        plan = compiler.compile(model(), Options(passes=[old]))
    assert plan.document["passes"] == compiler.compile(model(), Options(passes=[new])).document["passes"]
    assert new in plan.document["passes"]


def test_pinned_dims():
    plan = compiler.compile(model(), Options(dims={"batch": 2}))
    assert plan.inputs[0].shape == (2, 3) and plan.outputs[0].shape == (3, 3)


def test_reports_come_as_passes_run():
    names = []
    compiler.compile(model(), Options(on_pass=lambda report: names.append(report.name), verify_passes=True))
    assert names == [step.name for step in pipeline.passes(Options())]


def test_stripped_origins():
    plan = compiler.compile(model(), Options(strip_origins=True))
    assert {origin["source"] + origin["module"] for origin in plan.document["origins"]} == {""}


def test_run_and_show():
    plan = compiler.compile(model())
    x = np.float32([[4, 5, 6]])
    outputs = compiler.load(plan).run({"x": x})
    assert list(outputs) == ["y", "z"]
    np.testing.assert_array_equal(outputs["y"], [[4, 5, 6], [1, 2, 3]])
    np.testing.assert_array_equal(outputs["z"], x)
    assert compiler.plan.show(plan).splitlines()[0] == "input %0:x: float32 [batch, 3]"


def test_bytes_that_are_no_plan():
    for ask in (lambda plan: plan.inputs, lambda plan: plan.outputs, compiler.load):
        with pytest.raises(compiler.PlanError):
            ask(compiler.Plan(b"abc"))


def test_every_code_has_a_page_and_every_page_a_code():
    sources = [path for path in Path(compiler.__file__).parent.rglob("*.py") if path.name != "errors.py"]
    used = {code for path in sources for code in re.findall(r'"(CC\d{4})"', path.read_text())}
    assert used == set(PAGES)
    assert all(text.endswith(".") for page in PAGES.values() for text in page)


def test_metadata_is_kept_by_name():
    proto = model()
    onnx.helper.set_model_props(proto, {"names": "cat, dog", "date": "2026-01-01T10:00 /home/alice/model.pt"})
    assert compiler.compile(proto).document["metadata"] == {}
    kept = compiler.compile(proto, Options(keep_metadata=["names", "absent"]))
    assert kept.document["metadata"] == {"names": "cat, dog"}
    assert b"alice" not in kept.data
    both = compiler.compile(proto, Options(keep_metadata=["names"], metadata={"version": "7", "names": "dogs"}))
    assert both.document["metadata"] == {"names": "dogs", "version": "7"}


SIZE = "a whole number from 0 to 999999999999999999"


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"passes": "fold_constants"}, TypeError, "passes: expected a list of names, found 'fold_constants'"),
        ({"passes": [1]}, TypeError, r"passes: expected a list of names, found \[1\]"),
        ({"keep_metadata": "names"}, TypeError, "keep_metadata: expected a list of names, found 'names'"),
        ({"metadata": "names"}, TypeError, "metadata: expected texts by key, found str"),
        ({"metadata": {"version": 7}}, TypeError, "metadata: expected texts by key, found 7 for 'version'"),
        ({"dims": 3}, TypeError, "dims: expected a dict of sizes by name, as .*, found int"),
        ({"dims": {1: 2}}, TypeError, "dims: expected a dict of sizes by name, as .*, found the key 1"),
        ({"dims": {"n": "1"}}, TypeError, rf"dims\['n'\]: expected {SIZE}, found '1'"),
        ({"dims": {"n": 1.5}}, TypeError, rf"dims\['n'\]: expected {SIZE}, found 1.5"),
        ({"dims": {"n": True}}, TypeError, rf"dims\['n'\]: expected {SIZE}, found True"),
        ({"dims": {"n": -1}}, ValueError, rf"dims\['n'\]: expected {SIZE}, found -1"),
        ({"dims": {"n": 10**18}}, ValueError, rf"dims\['n'\]: expected {SIZE}, found 1000000000000000000"),
        ({"max_memory": "1G"}, TypeError, f"max_memory: expected {SIZE}, found '1G'"),
        ({"max_memory": 1e6}, TypeError, f"max_memory: expected {SIZE}, found 1000000.0"),
        ({"max_memory": -1}, ValueError, f"max_memory: expected {SIZE}, found -1"),
        ({"optimize": "no"}, TypeError, "optimize: expected True or False, found str"),
        ({"on_pass": 1}, TypeError, "on_pass: expected a function, found int"),
    ],
    ids=str,
)
def test_options_that_are_none(fields, error, said):
    with pytest.raises(error, match=rf"Options\.{said}"):
        Options(**fields)


def test_options_of_other_types():
    options = Options(dims={"batch": np.int64(2)}, max_memory=np.uint32(10**6), passes=("drop_identities",))
    assert type(options.dims["batch"]) is int
    assert compiler.compile(model(), options).document["max_memory"] == 10**6
    with pytest.raises(TypeError, match=r"options are compiler.Options\(…\), not dict"):
        compiler.compile(model(), {"optimize": False})


def test_a_dimension_of_size_zero():
    plan = compiler.compile(model(), Options(dims={"batch": 0}))
    outputs = compiler.load(plan).run({"x": np.zeros((0, 3), np.float32)})
    np.testing.assert_array_equal(outputs["y"], [[1, 2, 3]])


def test_descriptions_of_passes_fit_a_line():
    """After the name come two numbers of nodes with up to five digits, the time, and the number of rewrites."""
    steps = {step.name: step for step in pipeline.passes(Options())}
    assert all(len(step.name) + len(step.result) + 35 <= 80 for step in steps.values())
    assert all(step.result != "rewrites" for step in steps.values())


def test_fusing_makes_fewer_nodes():
    nodes = " ".join(f"v{index + 1} = {'Tanh' if index % 2 else 'Sin'}(v{index})" for index in range(80))
    text = f'<ir_version: 10, opset_import: ["": 20]> g (float[2, 3] v0) => (float[2, 3] v80) {{ {nodes} }}'
    reports = []
    compiler.compile(onnx.parser.parse_model(text), Options(on_pass=reports.append))
    [fused] = [report for report in reports if report.name == "fuse_elementwise"]
    assert fused.fired
    assert fused.nodes_before == 80
    assert fused.nodes_after == 80 - sum(each.rule.count("+") for each in fused.fired)
