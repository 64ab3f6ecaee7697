"""The law of this file: whatever the process says while the audit runs is heard, at every level.

Loggers are heard whatever their level, ``disabled`` or ``propagate`` say, and behind their own
filters, which may redact; what was to be printed is still printed where it would have been.
Standard streams are heard twice: the Python objects, and the file descriptors below them that C
code and child processes write to. Everything is put back.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, Final

__all__ = ["hear_hooks", "hear_logs", "hear_spans", "hear_streams", "hear_warnings"]

Hears = Callable[[str, object], None]
"""Is told a place and what was said there."""

_RECORD_NOISE: Final = frozenset({"msg", "args", "exc_info", "exc_text", "message"})


@contextmanager
def hear_logs(hears: Hears, without: frozenset[str] = frozenset()) -> Generator[None]:
    """Hear every record that its logger lets pass, at DEBUG and below, but of those left out."""
    enabled, handle = logging.Logger.isEnabledFor, logging.Logger.handle
    busy = threading.local()

    def hear(self: logging.Logger, record: logging.LogRecord) -> None:
        passed: Any = self.filter(record)
        if not passed:
            return
        if isinstance(passed, logging.LogRecord):  # from Python 3.12 on it may be another one
            record = passed
        if not getattr(busy, "now", False) and not _below(self.name, without):
            busy.now = True  # printing an argument may log
            try:
                _hear_record(hears, record)
            finally:
                busy.now = False
        if enabled(self, record.levelno):
            self.callHandlers(record)

    def always(self: logging.Logger, level: int) -> bool:
        return not getattr(busy, "now", False) or enabled(self, level)

    logging.Logger.handle = hear
    logging.Logger.isEnabledFor = always
    try:
        yield
    finally:
        logging.Logger.handle = handle
        logging.Logger.isEnabledFor = enabled


def _below(name: str, roots: frozenset[str]) -> bool:
    """The logger is one of these, or below one."""
    return any(name == root or name.startswith(f"{root}.") for root in roots)


def _hear_record(hears: Hears, record: logging.LogRecord) -> None:
    """The message as written, its parts, its exception, and what a formatter may add."""
    place = f"{record.levelname} of {record.name} (line {record.lineno})"
    try:
        hears(f"{place}: message", record.getMessage())
    except Exception as error:  # noqa: BLE001 - logging prints it instead
        hears(f"{place}: message", error)
    hears(f"{place}: msg", record.msg)
    hears(f"{place}: args", record.args)
    if record.exc_info and record.exc_info[1] is not None:
        hears(f"{place}: exception", record.exc_info[1])
    hears(f"{place}: exc_text", record.exc_text or "")
    for name, value in record.__dict__.items():
        if name not in _RECORD_NOISE:
            hears(f"{place}: {name}", value)


@contextmanager
def hear_warnings(hears: Hears) -> Generator[None]:
    """Hear every warning, each time it is given; afterwards give it to whoever listens outside."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            kept = list(heard)
            for warning in kept:
                place = f"{warning.category.__name__} (line {warning.lineno})"
                hears(f"{place}: message", str(warning.message))
                hears(f"{place}: warning", warning.message)
                hears(f"{place}: source", warning.source)
    for warning in kept:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


class _Tee:
    """A stream that is heard, and writes on."""

    def __init__(self, stream: Any, hear: Callable[[Any], None]) -> None:
        self._stream = stream
        self._hear = hear

    def write(self, text: Any) -> Any:
        self._hear(text)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _Tee:
        """The bytes below the text, heard as well."""
        return _Tee(self._stream.buffer, self._hear)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def hear_streams(hears: Hears, *, descriptors: bool = True) -> Generator[None]:
    """Hear ``sys.stdout`` and ``sys.stderr``, and descriptors 1 and 2 below them."""
    said: dict[str, list[Any]] = {"stdout": [], "stderr": []}
    streams = {name: getattr(sys, name) for name in said}
    for name, stream in streams.items():
        if stream is not None:
            setattr(sys, name, _Tee(stream, said[name].append))
    taken = [_Descriptor(number) for number in (1, 2)] if descriptors else []
    try:
        yield
    finally:
        for name, stream in streams.items():
            setattr(sys, name, stream)
            if stream is not None:
                with suppress(Exception):
                    stream.flush()
            hears(name, "".join(text for text in said[name] if isinstance(text, str)))
            hears(
                f"{name}.buffer", b"".join(bytes(t) for t in said[name] if not isinstance(t, str))
            )
        for descriptor in taken:
            hears(f"descriptor {descriptor.number}", descriptor.give_back())


class _Descriptor:
    """A file descriptor that leads into a file until it is given back."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when given back
        try:
            self._kept: int | None = os.dup(number)
            os.dup2(self._file.fileno(), number)
        except OSError:  # a service without standard streams
            self._kept = None

    def give_back(self) -> bytes:
        """Lead it where it led, write there what came meanwhile, and return that."""
        if self._kept is None:
            self._file.close()
            return b""
        os.dup2(self._kept, self.number)
        os.close(self._kept)
        self._file.seek(0)
        said = self._file.read()
        self._file.close()
        left = memoryview(said)
        with suppress(OSError):
            while left:
                left = left[os.write(self.number, left) :]
        return said


@contextmanager
def hear_hooks(hears: Hears) -> Generator[None]:
    """Hear exceptions that nobody caught: in threads, in finalizers, at the top."""
    unraisable, thread, top = sys.unraisablehook, threading.excepthook, sys.excepthook

    def hear_unraisable(args: Any) -> None:
        hears("unraisable", args.exc_value)
        hears("unraisable: message", args.err_msg)
        unraisable(args)

    def hear_thread(args: Any) -> None:
        hears("thread", args.exc_value)
        thread(args)

    def hear_top(kind: Any, error: Any, tb: Any) -> None:
        hears("top", error)
        top(kind, error, tb)

    sys.unraisablehook, threading.excepthook, sys.excepthook = (
        hear_unraisable,
        hear_thread,
        hear_top,
    )
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook, sys.excepthook = unraisable, thread, top


@contextmanager
def hear_spans(hears: Hears) -> Generator[None]:
    """Hear the spans of the global tracer provider, where it is the OpenTelemetry SDK's.

    A processor cannot be taken out again; ours turns deaf.
    """
    add = _add_span_processor()
    if add is None:
        yield
        return
    listening = True

    class Hearing:
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            """Nothing yet."""

        def _on_ending(self, span: Any) -> None:
            """Nothing yet."""

        def on_end(self, span: Any) -> None:
            if listening:
                hears(f"span {span.name}", span)

        def shutdown(self) -> None:
            """Nothing to let go of."""

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            del timeout_millis
            return True

    add(Hearing())
    try:
        yield
    finally:
        listening = False


def _add_span_processor() -> Callable[[Any], None] | None:
    try:
        from opentelemetry import trace  # noqa: PLC0415 - only where it is installed
    except ImportError:
        return None
    return getattr(trace.get_tracer_provider(), "add_span_processor", None)
