"""The known differences of accepted models: operator → part of the problem, as a regular expression → reason."""

from __future__ import annotations

from tests.accepted.bases import Key

_PERIODIC = {
    r"periodic = (2|-1).*differs": "the standard computes with the number; onnxruntime only tells 0 from other numbers"
}

KNOWN: dict[Key, dict[str, str]] = {
    ("", "BlackmanWindow"): _PERIODIC,
    ("", "Gather"): {r"tensor\(string\).*differs": "onnxruntime copies only the first string of a block"},
    ("", "HammingWindow"): _PERIODIC,
    ("", "HannWindow"): _PERIODIC,
    ("", "Resize"): {r"linear_antialias, T1 = .*int.*differs": "the exact result is halfway between two integers"},
}
