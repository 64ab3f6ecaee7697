"""R107, R108, R109, B7. Plant a secret in each channel of the audit, and see it found there."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.leaks import CANARY, NOTHING_ALIVE, caught, leaky, ours
from surefoot.credentials import Bearer, CredentialRequest, Issued, Secret
from surefoot.testing import AuditChannel, SecretAudit, SecretLeakError, assert_no_secret


def log(level: int = logging.DEBUG, **settings: Any) -> None:
    """Log at DEBUG to a logger that shows nothing."""
    logger = logging.getLogger("tests.audit.quiet")
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)
    logger.disabled = True
    logger.log(level, settings.pop("message", "said"), *settings.pop("args", ()), **settings)


class Dying:
    """Fails while it is let go."""

    def __del__(self) -> None:
        raise ValueError(CANARY)


def die() -> None:
    Dying()
    gc.collect()


def thread() -> None:
    def fail() -> None:
        raise ValueError(CANARY)

    one = threading.Thread(target=fail)
    one.start()
    one.join()


SAID: list[tuple[AuditChannel, str, Callable[[], object]]] = [
    ("logs", "the message", lambda: log(message=CANARY)),
    ("logs", "an argument", lambda: log(message="x %s", args=(CANARY,))),
    ("logs", "an argument that is no text", lambda: log(args=(httpx2.Headers({"k": CANARY}),))),
    ("logs", "an extra field", lambda: log(extra={"token": CANARY})),
    ("logs", "an exception", lambda: log(exc_info=ValueError(CANARY))),
    ("logs", "below DEBUG", lambda: log(level=1, message=CANARY)),
    ("logs", "a record that cannot be formatted", lambda: log(message=CANARY, args=(1,))),
    ("warnings", "the message", lambda: warnings.warn(CANARY, stacklevel=1)),
    ("streams", "print", lambda: print(CANARY)),  # noqa: T201
    ("streams", "standard error", lambda: sys.stderr.write(CANARY)),
    ("streams", "the buffer", lambda: sys.stdout.buffer.write(CANARY.encode())),
    ("streams", "lines", lambda: sys.stdout.writelines([CANARY])),
    ("streams", "a descriptor", lambda: os.write(2, CANARY.encode())),
    (
        "streams",
        "a child",
        lambda: subprocess.run([sys.executable, "-c", f"print({CANARY!r})"], check=True),
    ),
    ("hooks", "a thread", thread),
    ("hooks", "a finalizer", die),
    ("hooks", "the top", lambda: sys.excepthook(ValueError, ValueError(CANARY), None)),
]


@pytest.mark.parametrize(("channel", "where", "say"), SAID, ids=[f"{c}-{w}" for c, w, _ in SAID])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:CANARY")
def test_what_is_said_is_heard(
    channel: AuditChannel, where: str, say: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R109. A hostile listener for everything: each way of saying it is found in its channel."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    del where
    with pytest.raises(SecretLeakError) as failed, SecretAudit(CANARY, skip=NOTHING_ALIVE):
        say()
    assert channel in {leak.channel for leak in failed.value.leaks}


def test_an_exception_that_leaves_the_block_is_replaced_if_it_holds_the_secret() -> None:
    """R108. A test runner would print it."""
    with (
        pytest.raises(SecretLeakError, match="left the block"),
        SecretAudit(CANARY, skip=NOTHING_ALIVE),
    ):
        raise ValueError(CANARY)


def test_an_exception_that_leaves_the_block_clean_passes() -> None:
    """R108. The audit hides no failure."""
    with pytest.raises(ValueError, match="clean"), SecretAudit(CANARY, skip=NOTHING_ALIVE):
        raise ValueError("clean")


def test_objects_of_ours_that_show_it_are_found() -> None:
    """R107. Wherever they are: the heap is searched."""
    kept = [CredentialRequest(principal=CANARY), ours(held=CANARY)]
    with pytest.raises(SecretLeakError) as failed:
        assert_no_secret(CANARY)
    places = {leak.place for leak in failed.value.leaks if leak.channel == "objects"}
    assert any("CredentialRequest.principal" in place for place in places)
    assert any("surefoot.fake.Fake" in place for place in places)
    assert kept


def test_blind_objects_are_seen_and_show_nothing() -> None:
    """R107. Alive, found, looked at, and clean."""
    kept = [Bearer(CANARY), Issued(Bearer(CANARY)), Secret(CANARY)]
    with SecretAudit(CANARY) as audit:
        audit.add("a credential", kept)
        audit.add("a request", CredentialRequest(user_token=Secret(CANARY)))
    assert audit.looked["objects"] > len(kept)
    assert audit.looked["artefacts"] > len(kept)


def test_a_request_that_is_still_alive_is_found() -> None:
    """R107. A vended token is dropped after its attempt: no request with it may live on."""
    kept = httpx2.Request("GET", "http://x", headers={"authorization": f"Bearer {CANARY}"})
    with pytest.raises(SecretLeakError) as failed:
        assert_no_secret(CANARY)
    assert {leak.channel for leak in failed.value.leaks} == {"requests"}
    del kept
    assert_no_secret(CANARY)


def test_a_finished_task_that_shows_it_is_found() -> None:
    """R108. asyncio prints results; so does a future that failed, and a callback's arguments."""

    async def vended(value: object) -> object:
        return value

    async def look(value: object) -> tuple[Leaks, Leaks]:
        clean = asyncio.ensure_future(vended(Issued(Bearer(CANARY))))
        await clean
        before = leaks_of(CANARY)
        planted = asyncio.ensure_future(vended(value))
        await planted
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failed.set_exception(ValueError(CANARY))
        handle = asyncio.get_running_loop().call_later(60, print, CANARY)
        after = leaks_of(CANARY)
        handle.cancel()
        assert failed.exception()
        return before, after

    before, after = asyncio.run(look(CANARY))
    assert before == set()
    assert {channel for channel, _ in after} == {"tasks"}
    assert {place.rpartition(".")[2].partition("[")[0] for _, place in after} >= {
        "Task",
        "Future",
        "TimerHandle",
    }


Leaks = set[tuple[str, str]]


def leaks_of(secret: str) -> Leaks:
    """Channel and place of each leak of what is alive."""
    try:
        assert_no_secret(secret)
    except SecretLeakError as error:
        return {(leak.channel, leak.place) for leak in error.leaks}
    return set()


def test_files_are_searched_by_name_and_content(tmp_path: Path) -> None:
    """R107. Evidence is files."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run.jsonl").write_text(f'{{"a":"{CANARY}"}}', encoding="utf-8")
    name = CANARY.replace("/", "_")
    with pytest.raises(SecretLeakError) as failed:
        assert_no_secret(CANARY, files=[tmp_path], skip=NOTHING_ALIVE)
    assert [str(leak) for leak in failed.value.leaks] == ["files: run.jsonl (verbatim)"]
    (tmp_path / "runs" / name).touch()
    with pytest.raises(SecretLeakError, match="the name of a file"):
        assert_no_secret(name, files=[tmp_path], skip=NOTHING_ALIVE)


def test_spans_are_searched_where_the_sdk_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """R109. Attributes, events, exceptions, status: whatever is exported."""
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    provider = sdk.TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    tracer = provider.get_tracer("tests")

    def trace_all() -> None:
        with tracer.start_as_current_span("clean", attributes={"token": CANARY}):
            pass
        with tracer.start_as_current_span("event") as span:
            span.add_event("retry", {"header": CANARY})
        with pytest.raises(ValueError, match="CANARY"), tracer.start_as_current_span("error"):
            raise ValueError(CANARY)

    with pytest.raises(SecretLeakError) as failed, SecretAudit(CANARY, skip=NOTHING_ALIVE):
        trace_all()
    places = {leak.place.split(":")[0] for leak in failed.value.leaks if leak.channel == "spans"}
    assert {place.split(".")[0] for place in places} == {"span clean", "span event", "span error"}
    with SecretAudit(CANARY, skip=NOTHING_ALIVE) as audit, tracer.start_as_current_span("clean"):
        pass
    assert audit.looked["spans"]


def test_a_clean_run_looks_at_every_channel_and_finds_nothing(tmp_path: Path) -> None:
    """R109. ``looked`` proves that silence was listened to."""
    (tmp_path / "run.jsonl").write_text("{}", encoding="utf-8")
    kept = [httpx2.Request("GET", "http://x"), Issued(Bearer("another"))]

    async def run() -> None:
        async def work() -> str:
            return "fine"

        done = asyncio.ensure_future(work())
        await done
        with SecretAudit(CANARY, files=[tmp_path]) as audit:
            sys.stdout.write("fine")
            logging.getLogger("tests.audit").debug("fine")
            audit.add("error", caught(leaky("def f(v):\n raise OSError"), "fine"))
            audit.add("result", {"text": "fine"})
        for channel in ("streams", "logs", "exceptions", "artefacts", "files", *NOTHING_ALIVE):
            assert audit.looked[channel], channel

    asyncio.run(run())
    assert kept


def test_the_failure_shows_nothing_of_the_secret(capsys: pytest.CaptureFixture[str]) -> None:
    """R108. Not its message, not its frames, not a place that is itself named by the secret."""
    error = caught(assert_no_secret, CANARY, {CANARY: CANARY}, CANARY)
    assert isinstance(error, SecretLeakError)
    assert len(error.leaks) >= 2
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    shown = [str(frame.locals) for frame in told.stack if frame.filename != __file__]
    assert shown
    for text in (str(error), repr(error), repr(error.leaks), *shown):
        assert CANARY not in text
    logger = f"tests.{CANARY}"
    with pytest.raises(SecretLeakError) as failed, SecretAudit(CANARY, skip=NOTHING_ALIVE):
        logging.getLogger(logger).debug("fine")
    assert "a place that is named by it" in str(failed.value)
    assert CANARY not in str(failed.value)
    assert CANARY not in "".join(capsys.readouterr())


def test_loggers_of_others_can_be_left_out_by_name() -> None:
    """R116. What a stranger's logger prints is the stranger's; those beside it are still heard."""
    with SecretAudit(CANARY, skip=NOTHING_ALIVE, without_loggers=["httpcore"]) as audit:
        logging.getLogger("httpcore.http11").debug(CANARY)
        logging.getLogger("httpcore").debug(CANARY)
    assert audit.leaks == ()
    with (
        pytest.raises(SecretLeakError),
        SecretAudit(CANARY, skip=NOTHING_ALIVE, without_loggers=["httpcore"]),
    ):
        logging.getLogger("httpcore2").debug(CANARY)
    with pytest.raises(TypeError, match="without_loggers: must hold names"):
        SecretAudit(CANARY, without_loggers="httpcore")


def test_a_filter_of_the_logger_itself_is_obeyed(caplog: pytest.LogCaptureFixture) -> None:
    """R109. Who redacts there redacts for every handler; without it that is found: control."""
    caplog.set_level(logging.DEBUG)
    logger = logging.getLogger("somebody.who.redacts")

    def redacts(record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        return "dropped" not in record.getMessage()

    def say() -> None:
        logger.error("failed", exc_info=ValueError(CANARY))
        logger.debug("dropped %s", CANARY)

    logger.addFilter(redacts)
    with SecretAudit(CANARY, skip=NOTHING_ALIVE) as audit:
        say()
    assert audit.looked["logs"]
    assert caplog.messages == ["failed"]
    logger.removeFilter(redacts)
    with pytest.raises(SecretLeakError) as failed, SecretAudit(CANARY, skip=NOTHING_ALIVE):
        say()
    assert {leak.channel for leak in failed.value.leaks} == {"logs"}
    assert caplog.messages == ["failed", "failed", f"dropped {CANARY}"]


def test_a_local_that_cannot_be_printed_hides_no_other() -> None:
    """R108. A half-made object is in the frames of what its maker raises."""
    function = leaky(
        "class Half:\n"
        "    def __repr__(self):\n"
        "        return self.missing\n"
        "def f(token):\n"
        "    half, held = Half(), token\n"
        "    raise ValueError\n"
    )
    with pytest.raises(SecretLeakError, match="local held"):
        assert_no_secret(CANARY, caught(function, CANARY), skip=NOTHING_ALIVE)


def test_frames_of_the_file_that_planted_it_may_hold_it() -> None:
    """R108. A test knows its own secret; a provider's file can be named as well."""
    token = CANARY
    own = caught(lambda: [token, Bearer("a\n")])
    assert_no_secret(CANARY, own, skip=NOTHING_ALIVE)
    provider = caught(leaky("def f(v):\n raise OSError"), CANARY)
    assert_no_secret(CANARY, provider, skip=NOTHING_ALIVE, trusted=["elsewhere.py"])
    with pytest.raises(SecretLeakError):
        assert_no_secret(CANARY, provider, skip=NOTHING_ALIVE)


def test_everything_is_put_back() -> None:
    """R109. The audit leaves the process as it was."""
    before = _state()
    with SecretAudit(CANARY):
        assert _state() != before
    assert _state() == before
    with pytest.raises(ZeroDivisionError), SecretAudit(CANARY):
        raise ZeroDivisionError
    assert _state() == before


def _state() -> list[object]:
    return [
        sys.stdout,
        sys.stderr,
        logging.Logger.handle,
        logging.Logger.isEnabledFor,
        sys.excepthook,
        sys.unraisablehook,
        threading.excepthook,
        os.fstat(1).st_ino,
    ]
