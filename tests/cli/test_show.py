"""surefoot show: what it reads, what it says of the rest, and its exit codes. B13, R54."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.recorded import Story, a_throttled_then_answered, written
from support.records import an_attempt
from surefoot.cli import _exit_codes as codes
from surefoot.cli import main


def a_run() -> list[dict[str, Any]]:
    story = Story()
    story.call(*a_throttled_then_answered())
    story.call(an_attempt(status=200), tool="lookup")
    return story.end()


@pytest.fixture
def record_file(tmp_path: Path) -> Path:
    return written(tmp_path / "run.jsonl", a_run())


def test_a_complete_record_is_shown_and_is_a_success(
    record_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R54, B13. The timeline on standard output, nothing on the other."""
    assert main(["show", str(record_file)]) == codes.OK
    out, err = capsys.readouterr()
    assert "search  at billing" in out
    assert "the record is complete" in out
    assert err == ""


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty: nothing was recorded"),
        (b"\n\n", "is empty: nothing was recorded"),
        (b"hello\nworld\n", "is no record of surefoot: line 1 is not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00", "is no record of surefoot: line 1 is not JSON"),
        (b'\n{"a": 1}\n', "is no record of surefoot: line 2 is JSON, but no event"),
        (b'[{"v":1,"type":"x"}]', "is no record of surefoot: line 1 is JSON, but no event"),
        (b'{"v":1,"type":"run.st', "holds no whole event: it was cut"),
    ],
)
def test_a_file_that_is_no_record_is_named_with_the_reason(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B13. One line, no traceback, and the exit code of a failure."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    for options in ([], ["--json"], ["--html", str(tmp_path / "page.html")]):
        assert main(["show", *options, str(path)]) == codes.FAILED
        out, err = capsys.readouterr()
        assert out == ""
        assert err == f"surefoot show: {path} {says}" + err.partition(says)[2]
        assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B13. As is a folder."""
    assert main(["show", str(tmp_path / "no.jsonl")]) == codes.FAILED
    assert capsys.readouterr().err.endswith("no.jsonl: No such file or directory\n")
    assert main(["show", str(tmp_path)]) == codes.FAILED
    assert capsys.readouterr().err.endswith("Is a directory\n")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("cut", "1 line cut in the middle: its process was killed while it wrote"),
        ("cut", "NOT RECORDED: the end of 1 run: still under way, or the process was killed"),
        ("gap", "NOT RECORDED: 1 event missing"),
        ("no end", "NOT RECORDED: the end of 1 run"),
        ("foreign line", "1 line of the file not JSON"),
        ("foreign line", "line 3 cannot be read: it is no JSON"),
        ("sink", "a sink failed (OSError) and lost 2 events here"),
    ],
)
def test_a_record_with_a_hole_is_shown_and_says_so_by_its_exit_code(
    harm: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B13. Complete or saying so; what is there is shown."""
    events: list[Any] = a_run()
    lines = [json.dumps(event) + "\n" for event in events]
    if harm == "cut":
        lines[-1] = lines[-1][:30]
    elif harm == "no end":
        del lines[-1]
    elif harm == "foreign line":
        lines.insert(2, "a stranger's words\n")
    elif harm == "gap":
        del lines[1]
    else:
        del lines[1:3]
        failed = {"v": 1, "type": "sink.failed", "seq": None, "run": "r1", "error": "OSError"}
        lines.insert(1, json.dumps({**failed, "dropped": 2}) + "\n")
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines), "utf-8")
    assert main(["show", str(path)]) == codes.INCOMPLETE
    out = " ".join(capsys.readouterr().out.split())
    assert says in out
    assert "the record is complete" not in out
    assert "at billing" in out


def test_an_event_of_an_unknown_type_is_passed_by_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B13. A newer writer does not make the record incomplete."""
    events = a_run()
    events[2:2] = [{"v": 3, "type": "tool.dream\x1b[2J", "run": "r1"}]
    path = written(tmp_path / "run.jsonl", events)
    assert main(["show", str(path)]) == codes.OK
    out = capsys.readouterr().out
    assert "an event of a type not known here: tool.dream\\x1b[2J" in out
    assert "\x1b" not in out


def test_json_says_the_same_to_programs_a_line_a_call(
    record_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B13, R51. Every line is JSON; the totals come last."""
    assert main(["show", "--json", str(record_file)]) == codes.OK
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == ["run", "call", "call", "run_end", "totals"]
    first = lines[1]
    assert (first["name"], first["endpoint"], first["attempts"]) == ("search", "billing", 2)
    assert (first["throttled"], first["waited_seconds"]) == (True, 2.5)
    assert first["permissions"] == [{"by": "policy", "assumes": "refused-before-execution"}]
    assert (first["at_seconds"], first["duration_seconds"]) == (0.0, 3.0)
    assert first["may_have_run"] is False
    totals = lines[-1]
    assert (totals["calls"], totals["attempts"], totals["throttled"]) == (2, 3, 1)
    assert (totals["complete"], totals["waited_seconds"]) == (True, 2.5)


def test_json_names_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B13. And the exit code is the same as without it."""
    path = tmp_path / "run.jsonl"
    text = "".join(json.dumps(event) + "\n" for event in a_run()[:-1])
    path.write_text(text + '{"v":1', "utf-8")
    assert main(["show", "--json", str(path)]) == codes.INCOMPLETE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"type": "unreadable", "line": 8, "why": "cut"} in lines
    assert lines[-1]["unreadable_lines"] == {"cut": 1}
    assert lines[-1]["unended_runs"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "the following arguments are required: RUN.jsonl"),
        (["--html"], "expected one argument"),
        (["--colour", "x.jsonl"], "unrecognized arguments"),
        (["--html", "p.html", "--json", "x.jsonl"], "leave out --follow and --json"),
        (["--html", "p.html", "--follow", "x.jsonl"], "leave out --follow and --json"),
        (["--follow", "-"], "--follow needs a file"),
    ],
)
def test_a_command_line_that_means_nothing_says_what_is_allowed(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R72. No traceback for a user's mistake."""
    assert main(["show", *arguments]) == codes.USAGE
    assert says in capsys.readouterr().err


def test_a_record_may_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], record_file: Path
) -> None:
    """R54. The name is a dash."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(record_file.read_bytes())))
    assert main(["show", "-"]) == codes.OK
    assert "search  at billing" in capsys.readouterr().out


START = "import sys; from surefoot.cli import main; sys.exit(main(sys.argv[1:]))"


def program(*arguments: str, stdin: int | None = None) -> subprocess.Popen[bytes]:
    """The real program, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_call_is_shown_while_the_rest_of_the_record_is_not_there_yet() -> None:
    """B13. It streams: the first call needs nothing of what follows."""
    lines = [json.dumps(event).encode() + b"\n" for event in a_run()]
    with program("show", "-", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(lines[:4]))
        process.stdin.flush()
        seen = b""
        while b"answered 200" not in seen:
            line = process.stdout.readline()
            assert line
            seen += line
        process.stdin.write(b"".join(lines[4:]))
        process.stdin.close()
        assert b"the record is complete" in process.stdout.read()
        assert process.wait(20) == codes.OK


def test_a_reader_who_leaves_early_is_no_error(tmp_path: Path) -> None:
    """R54. As with `head`: no traceback, and a code of its own."""
    story = Story()
    for _ in range(3_000):
        story.request(an_attempt(status=200))
    path = written(tmp_path / "run.jsonl", story.end())
    with program("show", str(path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == codes.BROKEN_PIPE


def a_long_run(folder: Path) -> Path:
    """A hundred thousand attempts: a file larger than the memory that the reader may use."""
    story = Story()
    story.request(*a_throttled_then_answered())
    first, call, last = (json.dumps(event).encode() + b"\n" for event in story.end())
    path = folder / "run.jsonl"
    with path.open("wb") as file:
        file.write(first)
        for _ in range(500):
            file.write(call * 100)
        file.write(last)
    assert path.stat().st_size > 45 * 2**20
    return path


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="asks the system what a process used")
def test_the_first_line_of_a_hundred_thousand_attempts_comes_within_a_second(
    tmp_path: Path,
) -> None:
    """R54. Of the reader's own time: what else the machine does at that moment is not its fault."""
    with program("show", str(a_long_run(tmp_path))) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"run A")
        process.kill()
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
    assert used.ru_utime + used.ru_stime < 1.0


@pytest.mark.unmeasured
@pytest.mark.slow
def test_a_hundred_thousand_attempts_are_shown_in_bounded_memory(tmp_path: Path) -> None:
    """B13. A file larger than all the memory that the program may use."""
    path = a_long_run(tmp_path)
    limit = "import resource as r; r.setrlimit(r.RLIMIT_DATA, (45 * 2**20,) * 2)\n"
    command = [sys.executable, "-c", limit + START, "show", "--json", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        calls = 0
        for line in process.stdout:
            calls += line.startswith(b'{"type":"call"')
    assert calls == 50_000
