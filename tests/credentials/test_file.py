"""R110, B8, B9, R108. A file is followed as it changes, is private, and is never shown."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

import anyio
import pytest

from surefoot.credentials import (
    ApiKey,
    CredentialRequest,
    FileCredentials,
    Issued,
    RetryingCredentials,
    TransientCredentialError,
)
from surefoot.errors import CredentialError, InvalidCredentialError
from surefoot.testing import FakeClock

pytestmark = pytest.mark.anyio

CANARY = "CANARY-file-1"
PLAIN = CredentialRequest(service="billing")


def write(path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    """Write in place, as a careless sidecar does."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def replace(path: Path, text: str) -> None:
    """Write beside and rename over, as a careful sidecar does."""
    write(path.with_suffix(".new"), text).rename(path)


def rewrite_unnoticed(path: Path, text: str) -> None:
    """Write in place, and set the time stamp back."""
    before = path.stat()
    write(path, text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def make(path: Path, what: str) -> None:
    """Make what is no file."""
    if what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "token"


@pytest.mark.parametrize("text", ["tok", "tok\n", "tok\r\n"])
async def test_one_line_break_at_the_end_is_dropped(path: Path, text: str) -> None:
    """B8, C25 of the bug reports. Editors and ``echo`` add one."""
    issued = await FileCredentials(write(path, text)).vend(PLAIN)
    assert issued.lines() == ((b"authorization", b"Bearer tok"),)


async def test_kind_says_what_the_text_is(path: Path) -> None:
    """R106."""
    issued = await FileCredentials(write(path, "k"), kind=ApiKey).vend(PLAIN)
    assert issued.kind == "api-key"


async def test_a_change_is_seen_after_check_every_seconds(path: Path) -> None:
    """R110. The same object while the text stays, so one generation (B9); then the new one."""
    clock = FakeClock()
    provider = FileCredentials(write(path, "one"), check_every=2.0, clock=clock)
    first = await provider.vend(PLAIN)
    replace(path, "two")
    await clock.sleep(1.9)
    assert await provider.vend(PLAIN) is first
    await clock.sleep(0.2)
    second = await provider.vend(PLAIN)
    assert second.secrets() == (b"two",)
    await clock.sleep(5)
    assert await provider.vend(PLAIN) is second


async def test_a_change_that_keeps_size_and_time_stamp_is_seen(path: Path) -> None:
    """R110. What is compared is what was read."""
    provider = FileCredentials(write(path, "one"), check_every=0)
    assert (await provider.vend(PLAIN)).secrets() == (b"one",)
    rewrite_unnoticed(path, "two")
    assert (await provider.vend(PLAIN)).secrets() == (b"two",)


async def test_a_link_that_is_turned_is_followed(tmp_path: Path) -> None:
    """R110. Secret mounts swap a link, not the file."""
    link = tmp_path / "current"
    link.symlink_to(write(tmp_path / "a", "one"))
    provider = FileCredentials(link, check_every=0)
    assert (await provider.vend(PLAIN)).secrets() == (b"one",)
    beside = tmp_path / "beside"
    beside.symlink_to(write(tmp_path / "b", "two"))
    beside.rename(link)
    assert (await provider.vend(PLAIN)).secrets() == (b"two",)


async def test_a_rejection_reads_at_once_and_never_vends_the_same_again(path: Path) -> None:
    """B9. A fresh one, or an error that says that asking again may help."""
    provider = FileCredentials(write(path, "one"), check_every=3600)
    first = await provider.vend(PLAIN)
    rejected = CredentialRequest(force=True, rejected=first.generation)
    with pytest.raises(TransientCredentialError, match="still holds it"):
        await provider.vend(rejected)
    with pytest.raises(TransientCredentialError, match="still holds it"):
        await provider.vend(CredentialRequest(force=True))
    replace(path, "two")
    second = await provider.vend(rejected)
    assert second.secrets() == (b"two",)
    assert await provider.vend(rejected) is second, "a late 401 for the old one asks for nothing"


async def test_retrying_around_it_waits_for_the_sidecar(path: Path) -> None:
    """B9. The two compose."""
    clock = FakeClock()

    class Sidecar(FakeClock):
        async def sleep(self, seconds: float) -> None:
            replace(path, "two")
            await clock.sleep(seconds)

    provider = RetryingCredentials(FileCredentials(write(path, "one")), clock=Sidecar())
    first = await provider.vend(PLAIN)
    assert isinstance(first, Issued)
    second = await provider.vend(CredentialRequest(force=True, rejected=first.generation))
    assert isinstance(second, Issued)
    assert second.secrets() == (b"two",)


async def test_a_forced_caller_is_not_given_what_a_plain_one_reads_meanwhile(path: Path) -> None:
    """B9. Both look at the same time; only one knows of the rejection."""
    provider = FileCredentials(write(path, "one"), check_every=0)
    first = await provider.vend(PLAIN)
    ends: list[object] = []

    async def forced() -> None:
        try:
            ends.append(
                await provider.vend(CredentialRequest(force=True, rejected=first.generation))
            )
        except TransientCredentialError as error:
            ends.append(error.reason)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(provider.vend, PLAIN)
            group.start_soon(forced)
    assert ends == ["it was rejected, and the file still holds it"]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX's")
@pytest.mark.parametrize(
    ("mode", "readable_by", "rule"),
    [
        (0o600, "owner", None),
        (0o400, "owner", None),
        (0o640, "owner", "others may read"),
        (0o604, "owner", "others may read"),
        (0o620, "owner", "others may write"),
        (0o640, "group", None),
        (0o644, "group", "others may read"),
        (0o660, "group", "others may write"),
        (0o644, "anyone", None),
        (0o646, "anyone", "others may write"),
        (0o664, "anyone", "others may write"),
        (0o666, None, None),
    ],
)
async def test_who_may_read_the_file_is_checked(
    path: Path, mode: int, readable_by: Any, rule: str | None
) -> None:
    """R107. A credential that others can read or write is none."""
    provider = FileCredentials(write(path, CANARY, mode), readable_by=readable_by)
    if rule is None:
        assert (await provider.vend(PLAIN)).secrets() == (CANARY.encode(),)
    else:
        with pytest.raises(CredentialError, match=rule):
            await provider.vend(PLAIN)


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root can give a file away"
)
async def test_a_file_of_another_user_is_refused(path: Path) -> None:
    """R107."""
    write(path, CANARY)
    os.chown(path, 12345, -1)
    with pytest.raises(CredentialError, match="belongs to another user"):
        await FileCredentials(path).vend(PLAIN)


async def test_a_file_that_is_missing_or_empty_may_come(path: Path) -> None:
    """Transient: a sidecar starts late, or is in the middle of a write."""
    provider = FileCredentials(path, check_every=0)
    with pytest.raises(TransientCredentialError, match="does not exist") as caught:
        await provider.vend(PLAIN)
    assert caught.value.service == "billing"
    write(path, " \n")
    with pytest.raises(TransientCredentialError, match="is empty"):
        await provider.vend(PLAIN)
    write(path, "tok")
    assert (await provider.vend(PLAIN)).secrets() == (b"tok",)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("what", ["folder", "pipe"])
async def test_what_is_no_file_is_refused_at_once(path: Path, what: str) -> None:
    """A pipe without a writer must not park the call."""
    make(path, what)
    with anyio.fail_after(2), pytest.raises(CredentialError, match="no regular file"):
        await FileCredentials(path).vend(PLAIN)


@pytest.mark.parametrize(
    ("text", "error", "rule"),
    [
        (f"{CANARY}\n\n", InvalidCredentialError, "line break"),
        (f" {CANARY}", InvalidCredentialError, "blank"),
        (CANARY.encode() + b"\xff", InvalidCredentialError, "outside ASCII"),
        (f"{CANARY}\x00", InvalidCredentialError, "control character"),
        (CANARY * 9, CredentialError, "too long"),
    ],
)
async def test_a_file_that_holds_no_credential_is_refused_unseen(
    path: Path, text: str | bytes, error: type[CredentialError], rule: str
) -> None:
    """B8, R108. No text, path, cause, context or local shows it."""
    provider = FileCredentials(write(path, text), max_bytes=100)
    with pytest.raises(error, match=rule) as caught:
        await provider.vend(PLAIN)
    raised = caught.value
    assert raised.__context__ is None
    assert raised.__cause__ is None
    told = traceback.TracebackException.from_exception(raised, capture_locals=True).stack[1:]
    assert told
    assert CANARY not in repr([frame.locals for frame in told])
    assert str(path) not in str(raised)


async def test_a_hundred_callers_read_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B9. And all get the same generation."""
    provider = FileCredentials(write(path, "tok"))
    reads: list[str] = []
    real = FileCredentials._bytes

    def counted(self: FileCredentials, service: str) -> bytes | CredentialError:
        reads.append(service)
        return real(self, service)

    monkeypatch.setattr(FileCredentials, "_bytes", counted)
    vended: list[Issued] = []

    async def call() -> None:
        vended.append(await provider.vend(PLAIN))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(call)
    assert len(reads) == 1
    assert len({issued.generation for issued in vended}) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"check_every": -1}, ValueError),
        ({"check_every": CANARY}, TypeError),
        ({"readable_by": CANARY}, ValueError),
        ({"max_bytes": 0}, ValueError),
        ({"kind": CANARY}, TypeError),
    ],
)
def test_an_option_that_means_nothing_is_refused_by_name(
    options: dict[str, Any], error: type[Exception]
) -> None:
    """R71, R72."""
    with pytest.raises(error, match=next(iter(options))) as caught:
        FileCredentials("token", **options)
    assert CANARY not in str(caught.value)


def test_the_path_is_a_path_and_is_not_printed() -> None:
    """R72. A secret may have been put in its place."""
    assert CANARY not in repr(FileCredentials(CANARY))
    assert FileCredentials(CANARY).path == CANARY
    wrong: Any = 7
    with pytest.raises(TypeError, match="path: must be a path"):
        FileCredentials(wrong)
