"""The command: it reads well, its exit codes mean one thing, and no mistake ends in a traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from surefoot.cli import _exit_codes as codes
from surefoot.cli import main
from surefoot.cli._main import COMMANDS

pytestmark = pytest.mark.both_majors

MAJOR = int(version("mcp").partition(".")[0])
PROGRAM = Path(sys.executable).parent / "surefoot"


def started(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def ran(*arguments: str, **environment: str) -> tuple[int, str, str]:
    process = started(*arguments, **environment)
    out, err = process.communicate(timeout=50)
    return process.returncode, out, err


def test_help_says_what_it_is_which_commands_there_are_and_one_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == codes.OK
    text = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(command.does)}$", text, re.MULTILINE)
    assert "example:\n  surefoot demo" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [("--version",), ("chek",), ("show", "missing.jsonl")])
def test_python_dash_m_is_the_same_program(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "surefoot", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stdout, done.stderr) == ran(*arguments)


def test_help_does_not_wait_for_the_sdk_or_the_demo() -> None:
    look = (
        "import sys; from surefoot.cli import main; code = main(['--help']);"
        "heavy = {'mcp', 'httpx', 'httpx2', 'surefoot.demo', 'surefoot.testing'};"
        "heavy &= set(sys.modules);"
        "sys.exit(f'imported: {sorted(heavy)}' if heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == codes.OK
    assert f"usage: surefoot {command}" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == codes.OK
    assert capsys.readouterr().out == f"surefoot {version('surefoot')}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dmeo"], "no such command: 'dmeo'"),
        (["--dmeo"], "no such option: '--dmeo'"),
        (["demo", "--only", "both"], "invalid choice"),
        (["demo", "--seed", "x"], "invalid int"),
        (["demo", "--seed"], "expected one argument"),
        (["demo", "now"], "unrecognized arguments: now"),
        (["demo", "--on", "plain"], "unrecognized arguments"),
    ],
)
def test_a_command_line_that_means_nothing_ends_with_what_is_allowed(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == codes.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "Traceback" not in err


def test_an_unknown_command_is_answered_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["dmeo"]) == codes.USAGE
    said = capsys.readouterr().err
    assert all(name in said for name in COMMANDS)


def test_no_command_at_all_prints_the_help_and_is_a_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == codes.USAGE
    assert "commands:" in capsys.readouterr().out


def test_what_the_system_refuses_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr("socket.create_server", refuse)
    assert main(["demo", "--only", "plain", "--json"]) == codes.FAILED
    assert capsys.readouterr() == ("", "surefoot: Address already in use\n")


def test_a_demo_in_which_surefoot_did_not_keep_its_word_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        kept = False

        def as_json(self) -> dict[str, object]:
            return {"kept": self.kept}

    monkeypatch.setattr("surefoot.demo.perform", lambda *_, **__: Broken())  # type: ignore[misc]
    assert main(["demo", "--json"]) == codes.FAILED
    out, err = capsys.readouterr()
    assert json.loads(out) == {"kept": False}
    assert "did not keep its word" in err


@pytest.mark.skipif(MAJOR == 1, reason="the plain run hangs for 8 s there, and prints the same way")
def test_piped_output_has_no_colour_and_keeps_to_a_narrow_terminal() -> None:
    code, out, err = ran("demo", "--only", "plain", COLUMNS="60", HTTP_PROXY="http://127.0.0.1:9")
    assert (code, err) == (codes.OK, "")
    assert "7 of 12" in out
    assert "\x1b" not in out
    story = out.partition("Declared once")[0]
    assert max(map(len, story.splitlines())) <= 60


def test_a_reader_who_leaves_ends_the_program_quietly() -> None:
    process = started("demo", "--only", "plain")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("surefoot demo")
    process.stdout.close()
    err = process.stderr.read()
    assert (process.wait(timeout=50), err) == (codes.BROKEN_PIPE, "")
    process.stderr.close()


def test_ctrl_c_ends_with_one_line_and_130() -> None:
    process = started("demo", "--only", "surefoot")
    assert process.stdout is not None
    for line in process.stdout:  # it is in the middle of a wait
        if "waits" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=50)
    assert (process.returncode, err) == (codes.INTERRUPTED, "surefoot: interrupted\n")
