"""The options of all verbs: one name has one meaning."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import click
import pytest

from compiler.cli.arguments import Device
from compiler.cli.command_group import Group
from compiler.cli.renamed import Verb
from tests.cli.command import run, verbs

LEDGER = {
    "--input": "In `candlec batch`, an input is a file of rows. In other verbs, it is an array or a file of one run.",
    "--weights": "`Options.weights` of the Python interface is a format, and `Session.with_weights` takes a file.",
}
"""Options with several kinds, and the reasons."""


def kind(option: click.Option) -> str:
    """Return the kind of the option's value. The kind of a text is its metavar, such as `NAME=N`."""
    if option.is_flag:
        return "flag"
    if isinstance(option.type, click.Path):
        return "path"
    if isinstance(option.type, click.Choice | Device):
        return "choice"
    return str(option.metavar) if option.type is click.STRING else option.type.name


def kinds() -> dict[str, dict[str, list[str]]]:
    """The kinds of each option, with their verbs."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, verb in verbs().items():
        for option in verb.params:
            for spelling in option.opts if isinstance(option, click.Option) else ():
                found[spelling][kind(option)].append(name)
    return found


def test_an_option_has_one_kind_in_all_verbs() -> None:
    several = {name: dict(each) for name, each in kinds().items() if len(each) > 1}
    unknown = {name: each for name, each in several.items() if name not in LEDGER}
    assert not unknown, f"rename an option, and keep its former name in compiler/cli/renamed.py: {unknown}"
    stale = LEDGER.keys() - several
    assert not stale, f"these options have one kind: remove them from LEDGER: {stale}"


@pytest.mark.parametrize(("name", "verb"), verbs().items(), ids=verbs())
def test_an_option_has_one_meaning(name: str, verb: click.Command) -> None:
    """`--dim` fixes sizes at compile time, `--size` sets sizes of random inputs, `--zoo` names a folder of models."""
    meanings = {"--dim": "dims", "--size": "sizes", "--zoo": {"bench": "zoo"}.get(name, "folder")}
    parameters = {option: each.name for each in verb.params for option in each.opts}
    assert not {"--path"} & parameters.keys()
    for option, parameter in meanings.items():
        assert parameters.get(option, parameter) == parameter


@pytest.mark.parametrize("name", verbs())
def test_every_verb_takes_verbose(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(verbs()[name], Verb | Group)
    assert run(*name.split(), "--verbose", "--help") == 0
    shown = capsys.readouterr().out
    assert shown.count("--verbose") == 1 and "Show the traceback of an error." in shown


@pytest.mark.parametrize(
    "command",
    [
        ["--verbose", "check", "model.onnx"],
        ["check", "--verbose", "model.onnx"],
        ["check", "model.onnx", "--verbose"],
        ["zoo", "--verbose", "run", "--zoo", "."],
    ],
)
def test_verbose_may_stand_anywhere(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*command) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err
