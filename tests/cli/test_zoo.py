"""`candlec zoo`: models of a folder compared with onnxruntime in every variant, and baselines of known differences."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import run


@pytest.mark.parametrize("way", [[], ["--unpin"]], ids=["pinned", "unpinned"])
def test_zoo_runs_every_model_every_way(zoo: Path, way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--junit", "zoo.xml", "--json", *way) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] and [each["ok"] for each in shown["outcomes"]] == [True] * 4
    assert '<testsuite name="zoo" tests="4" failures="0">' in (zoo / "zoo.xml").read_text()


def test_both_kinds_of_shapes_are_checked_in_one_process(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("zoo", "run", "--zoo", ".", "--both", "--results", "zoo.jsonl")
    assert run(*options, "--junit", "zoo.xml", "--summary", "zoo.md", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["ok"] and all(len(shown[kind]["outcomes"]) == 4 for kind in ("pinned", "unpinned"))
    [line] = (zoo / "zoo.jsonl").read_text().splitlines()
    assert json.loads(line)["what"] == "check, pinned and unpinned, cpu"
    report = (zoo / "zoo.xml").read_text()
    assert all(f'<testsuite name="zoo, {kind}" tests="4" failures="0">' in report for kind in ("pinned", "unpinned"))
    assert (zoo / "zoo.md").read_text().count("## Models") == 2
    assert run(*options, "--resume") == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("1 of 1 models have results") and "unpinned shapes" in printed.out
    assert run(*options, "--unpin") == 2
    assert "--both includes the plans of --unpin" in capsys.readouterr().err


def test_a_baseline_for_one_kind_of_shapes_does_not_allow_the_other(
    canceling: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (canceling / "zoo.toml").write_text('[unsure]\nreason = "it is"\npinned = { refused = ["CC0301"] }\n')
    assert run("zoo", "run", "--zoo", ".", "--both", "--baseline", "zoo.toml", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["pinned"]["ok"], shown["unpinned"]["ok"]) == (False, True)


def test_rounding_like_onnxruntimes_is_equal(canceling: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".") == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"✓ unsure, unsure: y: difference \S+, tolerance \S+; error against double precision \S+, onnxruntime's \S+\n",
        printed,
    )
    assert "in all runs: 1 of 1 model equals onnxruntime's\n" in printed
    run("compile", "unsure.onnx", "--no-optimize")
    capsys.readouterr()
    assert run("verify", "unsure.onnx", "unsure.plan", "--input", "unsure.npz") == 0
    printed = capsys.readouterr().out
    assert "✓" in printed and "1 of 1 output equals onnxruntime's" in printed
    assert "y: against this compiler's result in double precision, the output's error is " in printed


def test_zoo_calls_equal_only_what_is_within_the_tolerance(
    quantizing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("zoo", "run", "--zoo", ".", "--junit", "zoo.xml", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert not shown["ok"]
    assert {each["variant"]: (each["verdict"], each["ok"]) for each in shown["outcomes"]} == {
        "optimized, 1 thread": ("equal", True),
        "optimized, 2 threads": ("equal", True),
        "plain, 1 thread": ("uncertain", False),
        "plain, 2 threads": ("uncertain", False),
    }
    report = (quantizing / "zoo.xml").read_text()
    assert '<testsuite name="zoo" tests="4" failures="2">' in report
    assert (
        report.count(
            '<failure message="it is uncertain, and neither INDEX.json nor the baseline allows it&#10;unsure: y: '
        )
        == 2
    )
    assert run("zoo", "run", "--zoo", ".") == 1
    printed = capsys.readouterr()
    assert printed.out.count("≈") == 2 + 1
    assert "from the nearer of onnxruntime's two results" in printed.out
    summary = "0 of 1 model equals onnxruntime's; 1 is uncertain: it differs by at most the reference noise plus the"
    assert summary in printed.out
    assert printed.err.count("error: unsure: it is uncertain, and neither INDEX.json nor the baseline allows it") == 1
    assert "help: `candlec zoo update --zoo . --baseline FILE` records the results" in printed.err


def test_an_index_may_say_why_a_model_is_uncertain(quantizing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (entry,) = json.loads((quantizing / "INDEX.json").read_text())
    for reason, code in (("it cancels", 0), ("", 1), (True, 1)):
        (quantizing / "INDEX.json").write_text(json.dumps([entry | {"uncertain": reason}]))
        assert run("zoo", "run", "--zoo", ".", "--junit", "zoo.xml") == code
    printed = capsys.readouterr()
    assert printed.out.count("unsure: it cancels") == 1
    assert "the model unsure has the uncertain True, not a string" in printed.err


DIFFERENCE = "y: difference {}, tolerance {}; {} from the nearer of onnxruntime's two results, {} apart"


MEASURED = f"""\
[unsure]
reason = "As measured: unsure: {DIFFERENCE}"
pinned = {{{{verdict = "uncertain", at_most = {{}}}}}}
unpinned = {{{{verdict = "uncertain", at_most = {{}}}}}}
"""


def test_a_baseline_says_what_is_not_equal(quantizing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 0
    written = (quantizing / "zoo.toml").read_text()
    numbers = re.findall(r"(?<= )[0-9.]+(?:e[-+][0-9]+)?", written)
    assert written == MEASURED.format(*numbers)
    assert capsys.readouterr().out.startswith(f"unsure: new: pinned uncertain, at most {numbers[-1]} ×; unpinned")
    for way in ([], ["--unpin"]):
        assert run("zoo", "run", "--zoo", ".", "--baseline", "zoo.toml", *way, "--json") == 0
        assert json.loads(capsys.readouterr().out)["stale"] == []
    (quantizing / "zoo.toml").write_text("# why\n\n" + re.sub('".*"\n', '"It cancels"\n', written, count=1))
    before = (quantizing / "zoo.toml").read_text()
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 0
    assert (quantizing / "zoo.toml").read_text() == before
    assert capsys.readouterr().out == "zoo.toml: 1 model with known differences\n"


LINE = """
[{}]
reason = "It cancels"
pinned = {{ verdict = "{}", at_most = {} }}
"""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (("unsure", "uncertain", 1e6), ""),
        (("unsure", "uncertain", 1.5), "× the tolerance, but the baseline allows 1.5 ×"),
        (("unsure", "different", 1e6), "it is now uncertain in every variant, but different in the baseline"),
        (("other", "uncertain", 1e6), "other: it is in the baseline, but not in the folder"),
        (("echo", "uncertain", 2), "echo: it is now equal in every variant, but uncertain in the baseline"),
        (("unsure", "equal", 2), "the verdict must be uncertain or different, not 'equal'"),
        (("unsure", "uncertain", 0.5), "at_most must be a number above 1, not 0.5"),
    ],
)
def test_a_baseline_has_to_be_so(
    quantizing: Path, line: tuple[str, str, float], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [{"name": "echo", "file": "echo.onnx", "cases": ["io.npz"]}]
    (quantizing / "INDEX.json").write_text(json.dumps(json.loads((quantizing / "INDEX.json").read_text()) + others))
    (quantizing / "zoo.toml").write_text(LINE.format(*line))
    arguments = ["zoo", "run", "--zoo", ".", "--baseline", "zoo.toml", "--junit", "zoo.xml"]
    assert run(*arguments) == (1 if problem else 0)
    printed = capsys.readouterr()
    assert problem in printed.err
    assert ("error:" in printed.err) is bool(problem)
    assert ("unsure: It cancels" in printed.out) is (line[0] == "unsure" and bool(printed.out))
    if line[0] == "unsure" and line[2] == 1e6:
        assert run(*arguments, "--unpin") == 1, "the line is for pinned shapes"
    if line[0] == "other":
        assert run(*arguments, "--only", "echo") == 0, "nothing is said of models that are not looked at"


def test_update_takes_out_what_is_not_so(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = LINE.format("echo", "uncertain", 2) + LINE.format("other", "different", 10)
    (zoo / "zoo.toml").write_text(lines)
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml", "--only", "echo") == 0
    assert (zoo / "zoo.toml").read_text().strip() == LINE.format("other", "different", 10).strip()
    assert run("zoo", "update", "--zoo", ".", "--baseline", "zoo.toml") == 0
    assert (zoo / "zoo.toml").read_text().strip() == ""
    assert capsys.readouterr().out.count("removed") == 2


@pytest.mark.parametrize(("tolerance", "code"), [(0.5, 0), (1e-9, 1)])
def test_zoo_holds_a_model_to_its_own_tolerance(
    quantizing: Path, tolerance: float, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = json.loads((quantizing / "INDEX.json").read_text())
    (quantizing / "INDEX.json").write_text(json.dumps([entry | {"tolerance": tolerance, "reason": "it cancels"}]))
    assert run("zoo", "run", "--zoo", ".") == code
    printed = capsys.readouterr().out
    assert f"unsure: tolerance {tolerance:g}: it cancels" in printed
    assert "≈" not in printed
    assert ("1 of 1 model equals onnxruntime's" in printed) is (code == 0)


def test_a_wide_tolerance_needs_a_reason(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (entry,) = json.loads((zoo / "INDEX.json").read_text())
    for tolerance, code in ((1e-5, 0), (1.1e-5, 1)):
        (zoo / "INDEX.json").write_text(json.dumps([entry | {"tolerance": tolerance}]))
        assert run("zoo", "run", "--zoo", ".") == code
    assert "the model echo has a tolerance of 1.1e-05 without a reason" in capsys.readouterr().err


def test_zoo_goes_on_after_a_model_that_onnxruntime_refuses(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("refused", "echo")
    (zoo / "INDEX.json").write_text(
        json.dumps([{"name": name, "file": f"{name}.onnx", "cases": ["io.npz"]} for name in files])
    )
    assert run("zoo", "run", "--zoo", ".", "--json") == 1
    outcomes = json.loads(capsys.readouterr().out)["outcomes"]
    assert [each["ok"] for each in outcomes] == [False] * 4 + [True] * 4
    assert "onnxruntime refuses the model" in outcomes[0]["remarks"][0]


def test_zoo_does_not_pass_without_cases(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (zoo / "INDEX.json").write_text(json.dumps([{"name": "echo", "file": "echo.onnx", "cases": []}]))
    assert run("zoo", "run", "--zoo", ".") == 1
    assert "the model echo has no cases" in capsys.readouterr().err


def test_zoo_without_an_index_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".") == 1
    assert "INDEX.json" in capsys.readouterr().err
