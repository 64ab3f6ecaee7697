"""R22, R23, R27, R51, D32, B13. Ten recorded runs are read by somebody who knows only the terminal.

Which call was throttled, how long it waited, who permitted the repeat, and what may have run: each
stands in the text of `surefoot show` at 80 columns, in ASCII and without colour.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.records import validator
from support.ten_runs import TEN_RUNS, TOKEN, recorded
from surefoot.sinks import read_events

pytestmark = [pytest.mark.unmeasured, pytest.mark.both_majors, pytest.mark.anyio]

SHOW = "import sys; from surefoot.cli import main; sys.exit(main())"


@pytest.fixture
def anyio_backend() -> str:
    """What is read does not depend on the loop; the doors are tested on both elsewhere."""
    return "asyncio"


@pytest.mark.parametrize("name", TEN_RUNS)
async def test_a_stranger_finds_in_the_text_what_happened(name: str, tmp_path: Path) -> None:
    """Also that nothing is claimed that did not happen; and the record is as the schema says."""
    path = await recorded(name, tmp_path)
    with path.open("rb") as lines:
        for event in read_events(lines):
            validator.validate(event)
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs meanwhile
        [sys.executable, "-c", SHOW, "show", str(path)],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "COLUMNS": "80"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    told = TEN_RUNS[name]
    read = " ".join(text.split())
    assert [words for words in told.says if words not in read] == []
    assert [words for words in told.says_not if words in read] == []
    assert "the record is complete" in read
    assert TOKEN not in text + path.read_text("utf-8")
