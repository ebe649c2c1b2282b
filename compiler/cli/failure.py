"""The messages of a failed command: problem, place and advice, without a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from compiler.cli.output import errors, print_json
from compiler.cli.streams import StreamError
from compiler.errors import Error, program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler import Diagnostic, InputError

__all__ = ["Failed", "diagnostic_data", "error_data", "report", "show_diagnostics"]


MOST_PLACES = 20

REFUSED, WRONG_USAGE, CRASHED = 1, 2, 70
"""The exit codes of the project's own errors, of an option's value, and of a bug: EX_SOFTWARE of sysexits.h."""


_OF_AN_OPTION = {"CC0403", "CC0503", "CC0505"}
"""The codes of errors in the value of an option."""

_OF_NO_MODEL = {"CC0101", "CC0102"} | _OF_AN_OPTION
"""The codes of errors in the file, in its path or in an option: there is no model that the compiler could refuse."""


class Failed(Exception):
    """A command's own reason to end with exit code 1."""


def report(error: BaseException, as_json: bool = False, verbose: bool = False) -> int:
    """Print an error, and return the exit code.

    With `as_json`, the function also prints the error as JSON on the standard output, unless this output is the
    problem. With `verbose`, the traceback follows.
    """
    from compiler import CompileError

    if isinstance(error, CompileError):
        show_diagnostics(error.diagnostics)
    else:
        for text in _texts(error):
            errors.print(_colored(text), soft_wrap=True)
    if verbose:
        import traceback

        errors.print("".join(traceback.format_exception(error)), soft_wrap=True)
    if as_json and not isinstance(error, StreamError):
        print_json(error_data(error))
    if isinstance(error, CompileError) and _OF_AN_OPTION.issuperset(_error_codes(error.diagnostics)):
        return WRONG_USAGE
    return CRASHED if _is_crash(error) else REFUSED


def _is_crash(error: BaseException) -> bool:
    """Whether the error is a bug: it is no exception of the project, and no error of a file or of memory."""
    return not isinstance(error, Error | Failed | OSError | MemoryError)


def _texts(error: BaseException) -> list[str]:
    """The error in words, one text for each finding."""
    if _is_crash(error):
        advice = "please report it with the model and with the output of `candlec --verbose COMMAND …`"
        places = "".join(f"\n  {place}" for place in getattr(error, "__notes__", ()))
        return [f"error: {_crash(error)}{places}\n  help: this is a bug in the compiler: {advice}"]
    from compiler import InputError, PlanError
    from compiler.accuracy.reference import ReferenceFailed

    match error:
        case PlanError():
            texts = [f"error: {violation}" for violation in error.violations]
            advice = f"  help: `{program()} compile` compiles an ONNX model into a plan"
            is_advised = error.kind in ("custom_op", "damaged", "version")  # by the runtime
            return texts if is_advised else [*texts, advice]
        case InputError():
            return [f"error: {error}{_advice_on_dtype(error)}"]
        case TimeoutError():  # of a run
            return [f"error: {error}: --timeout sets it"]
        case OSError():
            return [f"error: {_of_file(error)}"]
        case MemoryError():
            return ["error: out of memory"]
        case ReferenceFailed():
            advice = f"`{program()} run PLAN --output FILE` writes a plan's outputs, to compare them with known ones"
            return [f"error: {error}\n  help: this command needs a model that onnxruntime runs; {advice}"]
    return [f"error: {error}"]


def _advice_on_dtype(error: InputError) -> str:
    """The conversion for an array with another dtype of numbers than its input; without one, an empty text."""
    from compiler.ir.dtypes import NAMES

    expected, found = (text.partition(" ")[0] for text in (error.expected, error.found))
    if expected == found or not {expected, found} <= set(NAMES) - {"string"}:
        return ""
    return f'\n  help: save the array as array.astype("{expected}") if this conversion keeps its numbers'


def _of_file(error: OSError) -> str:
    """The file and the system's reason."""
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


def _crash(error: BaseException) -> str:
    """The error's type and text. The text alone may explain nothing."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def show_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Print findings in rustc's form, equal ones together, then the number of errors."""
    groups: dict[tuple[str, str, str], list[Diagnostic]] = {}
    for each in diagnostics:
        groups.setdefault((each.code, each.message, each.help), []).append(each)
    for group in groups.values():
        errors.print(_colored(_together(group)), soft_wrap=True)
        errors.print()
    if codes := _error_codes(diagnostics):
        refusal = "" if _OF_NO_MODEL.issuperset(codes) else "the compiler refuses the model: "
        count = sum(group[0].severity == "error" for group in groups.values())
        places = f" in {len(codes)} places" if len(codes) > count else ""
        if refusal or count > 1:  # otherwise the summary would repeat the only error
            summary = f"error: {refusal}{count} error{'s' * (count > 1)}{places}"
            errors.print(_colored(summary), soft_wrap=True)


def _error_codes(diagnostics: Sequence[Diagnostic]) -> list[str]:
    return [each.code for each in diagnostics if each.severity == "error"]


def error_data(error: BaseException) -> dict[str, Any]:
    """An error as JSON. A bug has the key `bug`."""
    from compiler import CompileError

    if isinstance(error, CompileError):
        return {"ok": False, "diagnostics": [diagnostic_data(each) for each in error.diagnostics]}
    if _is_crash(error):
        return {"ok": False, "error": _crash(error), "bug": True}
    text = _of_file(error) if isinstance(error, OSError) else str(error)
    return {"ok": False, "error": text or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)}


def _together(group: Sequence[Diagnostic]) -> str:
    """The text of findings that differ only in their places."""
    head, *_, advice = str(group[0]).splitlines()
    places = [f"  --> {each.origin}" for each in group if each.origin]
    more = [f"  --> … and {len(places) - MOST_PLACES} more; --json lists all"] if len(places) > MOST_PLACES else []
    return "\n".join([head, *places[:MOST_PLACES], *more, advice])


def diagnostic_data(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as JSON."""
    origin = diagnostic.origin
    return {
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "nodes": list(origin.nodes) if origin else [],
        "module": origin.module if origin else "",
        "layer": origin.layer if origin else "",
        "source": origin.source if origin else "",
    }


def _colored(text: str) -> Text:
    """`error…:` in red, `warning…:` in yellow, arrows and `help:` dimmed, as rustc does."""
    styled = Text(text)
    styled.highlight_regex(r"^error(\[\w+\])?:", "bold red")
    styled.highlight_regex(r"^warning(\[\w+\])?:", "bold yellow")
    styled.highlight_regex(r"(?m)^  (-->|help:)", "bold blue")
    return styled
