"""Outcomes of a folder of models as JUnit XML, which CI servers read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.zoo.outcome import Outcome

__all__ = ["junit"]


def junit(outcomes: Sequence[Outcome], stale: Mapping[str, str], drifted: Mapping[str, Sequence[str]]) -> bytes:
    """The outcomes as JUnit XML: one test for each model and variant, and one for each model with a stale line.

    `stale` maps such a model to the problem with its line in the baseline. `drifted` maps a model to the drifts of its
    facts; each such model has a test too.
    """
    more = len(stale) + len(drifted)
    tests, failures = len(outcomes) + more, more + sum(bool(each.problem) for each in outcomes)
    suite = ElementTree.Element("testsuite", name="zoo", tests=str(tests), failures=str(failures))
    for each in outcomes:
        time_taken = f"{each.seconds:.3f}"
        case = ElementTree.SubElement(suite, "testcase", classname=each.model, name=each.variant, time=time_taken)
        if each.problem:
            ElementTree.SubElement(case, "failure", message="\n".join([each.problem, *each.remarks]))
        elif each.remarks:
            ElementTree.SubElement(case, "system-out").text = "\n".join(each.remarks)
    problems = [*((model, "baseline", each) for model, each in stale.items())]
    problems += [(model, "facts", "\n".join(lines)) for model, lines in drifted.items()]
    for model, name, problem in problems:
        case = ElementTree.SubElement(suite, "testcase", classname=model, name=name)
        ElementTree.SubElement(case, "failure", message=problem)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
