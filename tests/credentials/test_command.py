"""R110, B8, R108, R123. A helper program: no shell, bounded, killed when cut, never echoed."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import anyio
import pytest

from surefoot.credentials import (
    Basic,
    Bearer,
    CommandCredentials,
    CredentialRequest,
    Issued,
    TransientCredentialError,
)
from surefoot.errors import CredentialError, InvalidCredentialError

pytestmark = pytest.mark.anyio

CANARY = "CANARY-cmd-1"
PLAIN = CredentialRequest(service="billing")


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


def prints(text: str) -> list[str]:
    return python("import sys; sys.stdout.write(sys.argv[1])", text)


@pytest.mark.parametrize("text", ["tok", "tok\n", "tok\r\n"])
async def test_what_it_prints_is_the_credential(text: str) -> None:
    """R110. One line break at the end is dropped."""
    issued = await CommandCredentials(prints(text)).vend(PLAIN)
    assert issued.secrets() == (b"tok",)


async def test_kind_reads_more_than_a_token() -> None:
    """R106. A pair, or a life beside the token."""

    def pair(text: str) -> Issued:
        user, password, life = text.split(":")
        return Issued(Basic(user, password), expires_in=float(life))

    issued = await CommandCredentials(prints("u:p:60"), kind=pair).vend(PLAIN)
    assert (issued.kind, issued.expires_in) == ("basic", 60.0)


async def test_no_shell_reads_the_list(tmp_path: Path) -> None:
    """B8. What a shell would run is text here."""
    touched = tmp_path / "touched"
    issued = await CommandCredentials(prints(f"$(touch {touched});x")).vend(PLAIN)
    assert issued.secrets() == (f"$(touch {touched});x".encode(),)
    assert not touched.exists()


async def test_it_reads_no_input_and_is_given_its_own_environment(tmp_path: Path) -> None:
    """A helper that asks a question gets no answer, and no terminal."""
    code = "import os, sys; print(sys.stdin.read() + os.environ['HELPER'] + os.getcwd())"
    (tmp_path / "here").symlink_to(tmp_path)
    provider = CommandCredentials(python(code), env={"HELPER": "h-"}, cwd=tmp_path / "here")
    printed = (await provider.vend(PLAIN)).secrets()[0].decode()
    assert printed.startswith("h-")
    assert (tmp_path / "here").samefile(printed.removeprefix("h-"))


async def test_it_runs_at_every_vend(tmp_path: Path) -> None:
    """R110, C07 of the bug reports: a helper that runs once per connection goes stale."""
    count = tmp_path / "count"
    code = (
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]);"
        "n = int(p.read_text()) + 1 if p.exists() else 1; p.write_text(str(n)); print(f't{n}')"
    )
    provider = CommandCredentials(python(code, str(count)))
    assert (await provider.vend(PLAIN)).secrets() == (b"t1",)
    assert (await provider.vend(CredentialRequest(force=True))).secrets() == (b"t2",)


@pytest.mark.parametrize(
    ("argv", "error", "rule"),
    [
        (python(f"import sys; sys.exit({CANARY!r})"), CredentialError, "failed with exit code 1"),
        (python("import sys; sys.exit(75)"), TransientCredentialError, "said to try again"),
        (python(f"raise ValueError({CANARY!r})"), CredentialError, "failed with exit code 1"),
        (["/nonexistent/CANARY-cmd-1"], CredentialError, "could not be started: FileNotFound"),
        (["a\0CANARY-cmd-1"], CredentialError, "could not be started: ValueError"),
        (prints(""), InvalidCredentialError, "it is empty"),
        (prints(f"{CANARY}\nmore"), InvalidCredentialError, "control character"),
        (prints(f" {CANARY}"), InvalidCredentialError, "blank"),
        (prints(CANARY * 20), CredentialError, "printed too much"),
    ],
)
async def test_a_helper_that_fails_shows_nothing_of_itself(
    argv: list[str],
    error: type[CredentialError],
    rule: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """R108, B8. Not its output, not its arguments, not what it wrote to its standard error."""
    provider = CommandCredentials(argv, max_bytes=100)
    with pytest.raises(error, match=rule) as caught:
        await provider.vend(PLAIN)
    raised = caught.value
    assert (raised.service, raised.__context__, raised.__cause__) == ("billing", None, None)
    told = traceback.TracebackException.from_exception(raised, capture_locals=True)
    assert CANARY not in repr([frame.locals for frame in told.stack[1:]])
    assert CANARY not in "".join(capfd.readouterr())
    assert CANARY not in repr(provider)


@pytest.mark.parametrize("cut", ["timeout", "cancel", "too much"])
async def test_a_helper_that_is_cut_is_killed_with_what_it_started(
    cut: str, tmp_path: Path
) -> None:
    """R123. Bounded in time and output; a child that holds the pipe dies too."""
    alive = tmp_path / "alive"
    child = (
        "import pathlib, sys, time\nwhile True: pathlib.Path(sys.argv[1]).touch(); time.sleep(.02)"
    )
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-I', '-S', '-c', sys.argv[1], sys.argv[2]])\n"
        "while True: sys.stdout.write('x' * int(sys.argv[3])); sys.stdout.flush(); time.sleep(.3)"
    )
    size = "4000" if cut == "too much" else "0"
    timeout = 1.0 if cut == "timeout" else 30.0
    provider = CommandCredentials(
        python(code, child, str(alive), size), timeout=timeout, max_bytes=3000
    )
    began = time.monotonic()
    if cut == "cancel":
        with anyio.move_on_after(1.0) as scope:
            await provider.vend(PLAIN)
        assert scope.cancelled_caught
    else:
        error = TransientCredentialError if cut == "timeout" else CredentialError
        with pytest.raises(error, match="too long" if cut == "timeout" else "too much"):
            await provider.vend(PLAIN)
    assert time.monotonic() - began < 10
    await _stays_still(alive)


@pytest.mark.parametrize("how", ["scope", "task"])
async def test_a_caller_who_leaves_while_the_helper_is_being_started_leaves_nothing_running(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend_name: str
) -> None:
    """R123. asyncio itself would kill the program alone, and not what it has started by then."""
    if how == "task" and anyio_backend_name != "asyncio":
        pytest.skip("a cancellation of asyncio's own")
    alive, opened, real = tmp_path / "alive", anyio.Event(), anyio.open_process

    async def takes_long(*given: Any, **options: Any) -> Any:
        process = await real(*given, **options)
        opened.set()
        while not alive.exists():  # noqa: ASYNC110 - it is another process that sets it
            await anyio.sleep(0.02)
        return process

    monkeypatch.setattr("anyio.open_process", takes_long)
    code = (
        "import pathlib, sys, time\n"
        "for _ in range(1500): pathlib.Path(sys.argv[1]).touch(); time.sleep(.02)"
    )
    provider = CommandCredentials(python(code, str(alive)), timeout=30)
    if how == "task":
        task = asyncio.ensure_future(provider.vend(PLAIN))
        await opened.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
    else:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.vend, PLAIN)
            await opened.wait()
            tasks.cancel_scope.cancel()
    await _stays_still(alive)


def _descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def _stays_still(alive: Path) -> None:
    """Nobody touches the file any more; while the child lives it does so every 20 ms."""
    for _ in range(50):
        before = _touched(alive)
        await anyio.sleep(0.2)
        if _touched(alive) == before:
            return
    pytest.fail("the child lives on")


def _touched(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.parametrize("ours", [True, False])
def test_the_debug_mode_of_asyncio_prints_nothing_of_it(
    ours: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """R109. Callbacks that took long are printed with their arguments; asyncio's own pipe: control.

    Its limit is a tenth of a second, which one pause of the machine may take; here it is nothing.
    """

    async def run() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0
        if ours:
            issued = await CommandCredentials(prints(CANARY)).vend(PLAIN)
            assert issued.secrets() == (CANARY.encode(),)
        else:
            assert (await anyio.run_process(prints(CANARY))).stdout == CANARY.encode()

    caplog.set_level(logging.DEBUG)
    asyncio.run(run(), debug=True)
    assert "Executing <Handle" in caplog.text
    printed = [line for line in caplog.messages if f"b'{CANARY}'" in line]
    assert bool(printed) is not ours


@pytest.mark.skipif(os.name != "posix", reason="descriptors are counted in /dev/fd")
async def test_no_descriptor_is_left_open() -> None:
    """R123. However it ends: done, failed, too much, not started, cancelled."""
    loud = prints("x" * 5000)

    async def fails(provider: CommandCredentials) -> None:
        with pytest.raises(CredentialError):
            await provider.vend(PLAIN)

    await CommandCredentials(prints("tok")).vend(PLAIN)
    before = _descriptors()
    for _ in range(3):
        await CommandCredentials(prints("tok")).vend(PLAIN)
        await fails(CommandCredentials(python("raise SystemExit(3)")))
        await fails(CommandCredentials(loud, max_bytes=100))
        await fails(CommandCredentials(["/no/such/program"]))
        with anyio.move_on_after(0.2):
            await CommandCredentials(python("import time; time.sleep(20)")).vend(PLAIN)
    assert _descriptors() <= before


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ("vault read CANARY", TypeError),
        (b"vault", TypeError),
        ([], ValueError),
        (["vault", 5], TypeError),
        ({"vault"}, TypeError),
        (None, TypeError),
    ],
)
def test_one_string_is_not_a_list(argv: Any, error: type[Exception]) -> None:
    """B8, R72. Nothing splits it, and nothing echoes it."""
    with pytest.raises(error, match="argv: must") as caught:
        CommandCredentials(argv)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"timeout": -1}, ValueError), ({"max_bytes": 0}, ValueError), ({"kind": "x"}, TypeError)],
)
def test_an_option_that_means_nothing_is_refused_by_name(
    options: dict[str, Any], error: type[Exception]
) -> None:
    """R71, R72."""
    with pytest.raises(error, match=next(iter(options))):
        CommandCredentials(["x"], **options)
    assert Bearer  # the default of ``kind``
