"""Outcomes of a folder of models as JUnit XML, which CI servers read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.zoo.folder_judgment import Judgment
    from compiler.zoo.outcome import Shapes

__all__ = ["junit"]


def junit(judgments: Mapping[Shapes, Judgment]) -> bytes:
    """The judgments as JUnit XML: a test suite for each kind of shapes."""
    suites = [_suite("zoo" if len(judgments) == 1 else f"zoo, {kind}", each) for kind, each in judgments.items()]
    root = suites[0]
    if len(suites) > 1:
        root = ElementTree.Element("testsuites")
        root.extend(suites)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _suite(title: str, judgment: Judgment) -> ElementTree.Element:
    """A test for each model and variant, each model with a stale line in the baseline, and each model with drifts."""
    outcomes, stale, others = judgment.outcomes, judgment.stale, judgment.problems_of_no_outcome
    more = len(stale) + len(others)
    tests, failures = len(outcomes) + more, more + sum(bool(each.problem) for each in outcomes)
    suite = ElementTree.Element("testsuite", name=title, tests=str(tests), failures=str(failures))
    for each in outcomes:
        time_taken = f"{each.seconds:.3f}"
        case = ElementTree.SubElement(suite, "testcase", classname=each.model, name=each.variant, time=time_taken)
        if each.problem:
            ElementTree.SubElement(case, "failure", message="\n".join([each.problem, *each.remarks]))
        elif each.remarks:
            ElementTree.SubElement(case, "system-out").text = "\n".join(each.remarks)
    problems = [*((model, "baseline", each) for model, each in stale.items())]
    problems += [(model, "facts", "\n".join(lines)) for model, lines in others.items()]
    for model, name, problem in problems:
        case = ElementTree.SubElement(suite, "testcase", classname=model, name=name)
        ElementTree.SubElement(case, "failure", message=problem)
    return suite
