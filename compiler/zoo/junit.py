"""Outcomes of a folder of models as JUnit XML, which CI servers read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.zoo.outcomes import Outcome, Stale

__all__ = ["junit"]


def junit(outcomes: Sequence[Outcome], stale: Sequence[Stale]) -> bytes:
    """The outcomes as JUnit XML: one test for each model and variant, and one for each stale line."""
    tests, failures = len(outcomes) + len(stale), len(stale) + sum(bool(each.problem) for each in outcomes)
    suite = ElementTree.Element("testsuite", name="zoo", tests=str(tests), failures=str(failures))
    for each in outcomes:
        time_taken = f"{each.seconds:.3f}"
        case = ElementTree.SubElement(suite, "testcase", classname=each.model, name=each.way, time=time_taken)
        if each.problem:
            ElementTree.SubElement(case, "failure", message="\n".join([each.problem, *each.remarks]))
        elif each.remarks:
            ElementTree.SubElement(case, "system-out").text = "\n".join(each.remarks)
    for line in stale:
        case = ElementTree.SubElement(suite, "testcase", classname=line.model, name="baseline")
        ElementTree.SubElement(case, "failure", message=line.problem)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
