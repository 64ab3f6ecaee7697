"""What the tests of the commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from surefoot.cli import main

if TYPE_CHECKING:
    from support.checking import Check, Ran


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """Run `surefoot check` in this process, and give its exit code and what it said."""

    def run(*arguments: str) -> Ran:
        code = main(["check", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
