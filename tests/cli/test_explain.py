"""`candlec explain`: every error code has its documentation."""

from __future__ import annotations

import pytest

from tests.cli.command import run


def test_every_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    from compiler.errors import PAGES

    assert run("explain") == 0
    listed = capsys.readouterr().out
    for code in PAGES:
        assert code in listed
        assert run("explain", code.lower()) == 0
        assert code in capsys.readouterr().out
