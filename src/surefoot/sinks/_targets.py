"""The law of this file: events may go to a path, a sink, a callable, or several of these at once.

Only a sink that promises ``never_stalls`` is handed events on the caller's thread; before any other
stands a courier. What we made we close; what the user made is only flushed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Final, TypeGuard, cast

from surefoot.evidence import Delivery, EventSink, Filed, SpanSource

from ._courier import AT_EXIT_SECONDS, QUEUE, Carried, Courier
from ._json_lines import JsonLinesSink
from ._loud import loud
from ._spans import OpenTelemetrySpans

__all__ = [
    "CallableSink",
    "FanOutSink",
    "QueuedSink",
    "Target",
    "as_sink",
    "let_go",
    "spans_and_events",
]

Target = str | os.PathLike[str] | EventSink | Callable[[Mapping[str, Any]], object]
"""Where events can go."""

_WAYS: Final = "a path, a sink with emit(event), or a function that takes one event"


class CallableSink:
    """A sink that calls a function with each event."""

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[Mapping[str, Any]], object]) -> None:
        self._take = take

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Call the function."""
        self._take(event)


class QueuedSink:
    """A courier before a sink that could stall or raise.

    Args:
        sink: Called on the courier's thread only.
        room: Events that may wait for it.
    """

    never_stalls: Final = True

    def __init__(self, sink: EventSink, *, room: int = QUEUE) -> None:
        self._delivery = Delivery(sink, alarm=loud)
        self._courier = Courier(self._hand_all, lost=self._no_room, room=room)

    @property
    def dropped(self) -> int:
        """Events that the sink did not take."""
        return self._delivery.losses.total

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Queue one event. Returns at once and never raises."""
        self._courier.offer(event)

    def emit_later(self, filed: Filed, /) -> None:
        """Queue an event that the courier's thread will write out."""
        self._courier.offer(filed)

    def flush(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Wait until what was emitted is handed over; whether that took less than ``timeout``."""
        return self._courier.flush(timeout)

    def close(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Hand over what is queued and end the thread. The sink is its user's to close."""
        return self._courier.close(timeout)

    def _hand_all(self, batch: Sequence[Carried]) -> None:
        for one in batch:
            try:
                self._delivery.hand(one.event() if isinstance(one, Filed) else one)
            except BaseException as error:  # noqa: BLE001 - the thread is ours: not even an exit ends it
                self._delivery.losses.add(type(error).__name__)

    def _no_room(self) -> None:
        self._delivery.losses.add("QueueFull")


class FanOutSink:
    """Hands each event to several sinks; what one of them does, the others never notice.

    Args:
        targets: Paths, sinks, or functions; and where a Gateway's spans come from, if one of them
            is an ``OpenTelemetrySpans``: it takes no events.

    Raises:
        TypeError: a target is none of these.
    """

    never_stalls: Final = True

    def __init__(self, *targets: Target | SpanSource) -> None:
        self.spans = next((target for target in targets if _opens_spans(target)), None)
        """What opens spans for the Gateway that has this as its evidence, or ``None``."""
        self._given = tuple(cast("Target", one) for one in targets if not _opens_spans(one))
        self._sinks = tuple(as_sink(target) for target in self._given)
        self._deliveries = tuple(Delivery(sink, alarm=loud) for sink in self._sinks)

    @property
    def dropped(self) -> int:
        """Events that some sink did not take, counted once for each such sink."""
        raised = sum(delivery.losses.total for delivery in self._deliveries)
        return raised + sum(getattr(sink, "dropped", 0) for sink in self._sinks)

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Hand the event to every sink."""
        for delivery in self._deliveries:
            delivery.hand(event)

    def emit_later(self, filed: Filed, /) -> None:
        """Hand an event to every sink that is still to be written out; it is written once."""
        for delivery in self._deliveries:
            delivery.hand(filed)

    def flush(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Flush every sink, the whole of it within ``timeout``; whether all did."""
        return _each(self._sinks, "flush", timeout)

    def close(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Flush every sink, and close those that were made here."""
        ours = [s for s, given in zip(self._sinks, self._given, strict=True) if s is not given]
        theirs = [s for s, given in zip(self._sinks, self._given, strict=True) if s is given]
        return _each(ours, "close", timeout) & _each(theirs, "flush", timeout)


def spans_and_events(target: Target | SpanSource | None) -> tuple[SpanSource, Target | None]:
    """What a Gateway's evidence says of spans, and of events; spans are the program's own else."""
    if target is not None and _opens_spans(target):
        return target, None
    spans = target.spans if isinstance(target, FanOutSink) else None
    return spans or OpenTelemetrySpans(), cast("Target | None", target)


def _opens_spans(target: object) -> TypeGuard[SpanSource]:
    return callable(getattr(target, "tracing", None)) and callable(getattr(target, "open", None))


def as_sink(target: Target, *, option: str = "target") -> EventSink:
    """The sink that a target stands for; the target itself where that can be called at once.

    Raises:
        OSError: a path cannot be opened for appending.
        TypeError: it is no path, no sink and no function; names ``option``.
    """
    if isinstance(target, (str, os.PathLike)):
        return JsonLinesSink(cast("str | os.PathLike[str]", target))
    if _opens_spans(target):
        msg = f"{option}: spans belong to a Gateway; pass it as Gateway(evidence=...)"
        raise TypeError(msg)
    emit = getattr(target, "emit", None)
    if not callable(emit) and not callable(target):
        msg = f"{option}: must be {_WAYS}"
        raise TypeError(msg)
    if iscoroutinefunction(emit or target):
        msg = f"{option}: must be a plain function: events are handed over by a thread"
        raise TypeError(msg)
    if not callable(emit):
        return QueuedSink(CallableSink(cast("Callable[[Mapping[str, Any]], object]", target)))
    sink = cast("EventSink", target)
    return sink if getattr(sink, "never_stalls", False) is True else QueuedSink(sink)


def let_go(sink: EventSink, target: Target, timeout: float = AT_EXIT_SECONDS) -> bool:
    """Close a sink that ``as_sink`` made of a target, or flush one that the user made."""
    return _each((sink,), "flush" if sink is target else "close", timeout)


def _each(sinks: Sequence[EventSink], verb: str, timeout: float) -> bool:
    """Flush or close each sink that can, the whole of it within ``timeout``; whether all did."""
    end = time.monotonic() + timeout
    done = True
    for sink in sinks:
        act = getattr(sink, verb, None)
        if act is not None:
            done = act(max(0.0, end - time.monotonic())) is not False and done
    return done
