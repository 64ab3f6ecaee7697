"""surefoot show --follow: a record that grows is shown as it grows, until Ctrl-C. B13, R54."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.recorded import Story
from support.records import an_attempt
from surefoot.cli import _exit_codes as codes
from surefoot.cli import _show_source as source


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits: whoever reads decides when to look again."""
    monkeypatch.setattr(source, "_pause", lambda: None)


def upto(lines: Iterator[bytes | None], looks: int = 3) -> list[bytes]:
    """What is new, and that there is nothing more after it."""
    found: list[bytes] = []
    empty = 0
    for line in lines:
        empty = 0 if line is not None else empty + 1
        if line is not None:
            found.append(line)
        if empty == looks:
            break
    return found


def test_lines_come_when_they_are_whole(tmp_path: Path) -> None:
    """B13. Half a line is not an event."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"one\ntw")
    lines = source.followed(path)
    assert upto(lines) == [b"one\n"]
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert upto(lines) == [b"two\n", b"three\n"]
    assert upto(lines) == []


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """B13. The reader may be there first."""
    path = tmp_path / "run.jsonl"
    lines = source.followed(path)
    assert upto(lines) == []
    path.write_bytes(b"one\n")
    assert upto(lines) == [b"one\n"]


def test_a_file_that_is_moved_away_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    """B13. Rotation by size loses nothing."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"one\n")
    lines = source.followed(path)
    assert upto(lines) == [b"one\n"]
    with path.open("ab") as file:
        file.write(b"two\nha")
    path.rename(tmp_path / "run.jsonl.1")
    path.write_bytes(b"three\n")
    assert upto(lines) == [b"two\n", b"ha", b"three\n"]


def test_a_file_that_is_cut_short_is_read_anew(tmp_path: Path) -> None:
    """B13. As `tail -f` does."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"one, which is long\n")
    lines = source.followed(path)
    assert upto(lines) == [b"one, which is long\n"]
    path.write_bytes(b"two\n")
    assert upto(lines) == [b"two\n"]


@pytest.mark.parametrize("followed", [False, True])
def test_a_line_without_end_is_bounded(
    followed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13. Somebody else's file cannot fill the memory."""
    monkeypatch.setattr(source, "LONGEST_LINE", 10)
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"x" * 35 + b"\nshort\n")
    if followed:
        found = upto(source.followed(path))
    else:
        with path.open("rb") as file:
            found = list(source.lines_of(file))
    assert max(map(len, found)) <= 11
    assert found[-1] == b"short\n"


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="signals")
def test_the_program_shows_what_is_added_and_ends_with_the_totals(tmp_path: Path) -> None:
    """B13, R54. Ctrl-C is how it ends: the totals, and a success."""
    story = Story()
    story.call(an_attempt(status=200), tool="first")
    story.call(an_attempt(status=200), tool="second")
    events = [json.dumps(event) + "\n" for event in story.end()]
    path = tmp_path / "run.jsonl"
    start = "import sys; from surefoot.cli import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", start, "show", "--follow", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        guard = threading.Timer(40, process.kill)
        guard.start()
        assert process.stdout is not None
        assert process.stderr is not None
        assert "waiting for" in process.stderr.readline()
        with path.open("a") as file:
            file.write("".join(events[:4]))
        until(process.stdout, "first  at billing")
        with path.open("a") as file:
            file.write("".join(events[4:]))
        until(process.stdout, "ended after")
        process.send_signal(signal.SIGINT)
        assert "the record is complete" in process.stdout.read()
        assert process.stderr.read() == ""
        assert process.wait(20) == codes.OK
        guard.cancel()


def until(stream: Any, words: str) -> None:
    """Read to the line that holds the words."""
    for line in stream:
        if words in line:
            return
    raise AssertionError(words)
