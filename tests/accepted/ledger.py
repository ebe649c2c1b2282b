"""The known differences of accepted models: operator → part of the problem, as a regular expression → reason."""

from __future__ import annotations

from tests.accepted.bases import Key

KNOWN: dict[Key, dict[str, str]] = {
    ("", "Gather"): {
        r"tensor\(string\).*differs": "onnxruntime copies only the first string of a block",
    },
}
