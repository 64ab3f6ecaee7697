"""Shell completion: what the help names is what a shell offers."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from surefoot.cli import _exit_codes as codes
from surefoot.cli import main
from surefoot.cli._main import COMMANDS

pytestmark = pytest.mark.both_majors

SHELLS = ("bash", "fish", "zsh")
BASH = shutil.which("bash")


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == codes.OK
    return capsys.readouterr().out


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([command, "--help"]) == codes.OK
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_every_option_of_its_help_is_offered(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    for command in COMMANDS:
        assert command in text
        options = set(
            re.findall(r"^  (?:-\w, )?--([a-z-]+)", help_of(command, capsys), re.MULTILINE)
        )
        assert options
        for option in options:
            assert re.search(rf"(?:--|-l ){option}\b", text), option
    assert (shell == "fish") or not re.search(r"''", text.replace("words=''", ""))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_its_shell_can_read(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    text = script(shell, capsys)
    done = subprocess.run(
        [program, "-n"], input=text, capture_output=True, text=True, check=False, timeout=20
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["surefoot", "de"], ["demo"]),
        (["surefoot", "demo", "--o"], ["--only"]),
        (["surefoot", "check", "--token-"], ["--token-env", "--token-file"]),
        (["surefoot", "completion", ""], ["--help", "bash", "fish", "zsh"]),
        (["surefoot", "nothing", "--"], []),
    ],
)
def test_bash_offers_what_fits(
    typed: list[str], offered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert BASH is not None
    words = " ".join(f"'{word}'" for word in typed)
    code = (
        f"{script('bash', capsys)}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}\n"
        '_surefoot; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [BASH, "--norc", "-c", code], capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout.split() == offered


def test_a_shell_that_nobody_knows_is_a_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == codes.USAGE
    assert "invalid choice" in capsys.readouterr().err
