"""What `surefoot check` says of a mistake: which option it is, and never what was given.

R72, R107: a value in a wrong place may be a token, the name of a file not less than its text.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.checking import Check
from surefoot.cli import _exit_codes as codes
from surefoot.testing import FaultyGateway

pytestmark = pytest.mark.both_majors

CANARY = "CANARY-7b2e91"
URL = "http://a.example/"
NOT_SHOWN = "the option takes a file's name, and what was given is not shown"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is where the program runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["https://me:CANARY-9@gateway.example.com/mcp"], "password; a token is named by --token"),
        (["ftp://gateway.example.com/CANARY-9"], "must be http or https"),
        (["not a url CANARY-9"], "url: "),
        ([], "URL"),
        (["http://a.example/", "--token", "CANARY-9"], "--token-env or --token-file"),
        (["http://a.example/", "--token=CANARY-9"], "--token-env or --token-file"),
        (["http://a.example/", "--json=CANARY-9"], "not shown"),
        (["http://a.example/", "CANARY-9"], "it takes one URL"),
        (["http://a.example/", "--token-env", "NO_SUCH_CANARY-9"], "letters, digits and _"),
        (["http://a.example/", "--token-env", "CANARY_9_IS_UNSET"], "not set, or is empty"),
        (["http://a.example/", "--api-key", "CANARY-9"], "--token-env or -file"),
        (["http://a.example/", "--args", '{"a": "CANARY-9"}'], "arguments of --call"),
        (["http://a.example/", "--call", "x", "--args", '{"a": CANARY-9}'], "--args: is not JSON"),
        (["http://a.example/", "--call", "x", "--args", '["CANARY-9"]'], "must be a JSON object"),
        (["http://a.example/", "--call", "x", "--args", '{"a": "CANARY-9\udc80"}'], "not-utf8"),
        (["http://a.example/", "--timeout", "0"], "above 0"),
        (["http://a.example/", "--timeout", "CANARY-9"], "must be seconds"),
    ],
)
def test_a_mistake_is_one_line_that_quotes_nothing(
    arguments: list[str], says: str, check: Check
) -> None:
    """R72."""
    code, out, err = check(*arguments)
    assert (code, out) == (codes.USAGE, "")
    assert says in err
    assert "CANARY" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", ["--token-file", "--args"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        (CANARY, "(No such file or directory)"),
        (f"{CANARY}/token", "(No such file or directory)"),
        (f"{CANARY}\0", "(that is no name of a file)"),
        (CANARY * 40, "(File name too long)"),
        (f"folder-{CANARY}", "(it is no regular file)"),
        (f"pipe-{CANARY}", "(it is no regular file)"),
        (f"file-{CANARY}/token", "(Not a directory)"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_its_option(
    option: str, name: str, why: str, check: Check, folder: Path
) -> None:
    """R72, R107. Nothing is sent, no pipe is waited for, and a token for a name is not echoed."""
    (folder / f"folder-{CANARY}").mkdir()
    (folder / f"file-{CANARY}").write_text("x", "utf-8")
    os.mkfifo(folder / f"pipe-{CANARY}")
    given = [option, name] if option == "--token-file" else ["--call", "x", option, f"@{name}"]
    code, out, err = check(URL, *given)
    assert (code, out) == (codes.FAILED, "")
    assert err == (
        f"surefoot check: the file of {option} cannot be read {why}; {NOT_SHOWN}. "
        "See surefoot check --help.\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_of_somebody_else_is_told_by_its_option(check: Check, tmp_path: Path) -> None:
    """R72, R107."""
    file = tmp_path / CANARY
    file.write_text(CANARY, "utf-8")
    file.chmod(0)
    code, _, err = check(URL, "--token-file", str(file))
    assert code == codes.FAILED
    assert "the file of --token-file cannot be read (Permission denied)" in err
    assert CANARY not in err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'{{"q": {CANARY}}}', "--args: is not JSON"),
        (f'{{"q": "{CANARY}", "q": 1}}', "--args: is not JSON (duplicate-key)"),
        (f'["{CANARY}"]', "--args: must be a JSON object"),
        (f'"{CANARY}"', "--args: must be a JSON object"),
        ("", "--args: is not JSON"),
        (f'{{"q": "{CANARY}"}}' + " " * (4 << 20), "--args: must be at most 4 MiB"),
    ],
    ids=range(6),
)
def test_arguments_in_a_file_that_are_none_are_not_quoted(
    text: str, why: str, check: Check, tmp_path: Path
) -> None:
    """R72, R107. The control: the very file, made whole, is read, and its text is sent."""
    file = tmp_path / f"{CANARY}.json"
    file.write_text(text, "utf-8")
    with FaultyGateway() as gateway:
        given = (gateway.url, "--call", "search", "--args", f"@{file}")
        code, out, err = check(*given)
        assert (code, out) == (codes.USAGE, "")
        assert err.startswith(f"surefoot check: {why}")
        assert CANARY not in err
        assert gateway.requests("tools/call") == ()
        file.write_text(f'{{"q": "{CANARY}"}}', "utf-8")
        code, _, _ = check(*given)
        assert code == codes.OK
        assert gateway.received(CANARY)


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (f"{CANARY}\x07", 0o600, ""),
        (f"{CANARY}\n{CANARY}", 0o600, ""),
        ("", 0o600, "the file is empty"),
        (CANARY * 8000, 0o600, "the file is too long for a credential"),
        pytest.param(
            CANARY, 0o644, "others may read the file",
            marks=pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX"),
        ),
    ],
    ids=range(5),
)  # fmt: skip
def test_a_token_file_that_holds_no_token_is_not_quoted_and_not_sent(
    text: str, mode: int, why: str, check: Check, tmp_path: Path
) -> None:
    """B8, R107. The control: the very file, made sound, is sent, and accepted."""
    file = tmp_path / f"{CANARY}.txt"
    file.write_text(text, "utf-8")
    file.chmod(mode)
    with FaultyGateway() as gateway:
        given = (gateway.url, "--token-file", str(file))
        code, out, err = check(*given)
        assert code == codes.FAILED
        assert f"no entry no credential: {why}" in " ".join(out.split())
        assert "the one that was given was never sent" in " ".join(out.split())
        assert CANARY not in out + err
        assert not gateway.received(CANARY)
        file.write_text(CANARY, "utf-8")
        file.chmod(0o600)
        code, out, err = check(*given)
        assert code == codes.OK
        assert gateway.received(CANARY)
        assert CANARY not in out + err


def test_a_token_in_the_place_of_a_tool_or_a_header_is_not_echoed(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R107. The control: a name that the server lists is its own, and is shown."""
    monkeypatch.setenv("CHECK_TOKEN", "a-token")
    with FaultyGateway() as gateway:
        code, out, err = check(gateway.url, "--call", CANARY)
        assert code == codes.FAILED
        assert "called     not called: the server lists no such tool" in out
        assert CANARY not in out + err
        code, out, err = check(
            gateway.url, "--token-env", "CHECK_TOKEN", "--api-key", f"{CANARY} x"
        )
        assert code in (codes.FAILED, codes.USAGE)
        assert CANARY not in out + err
        assert "search: it ran" in check(gateway.url, "--call", "search")[1]
