"""The law of this file: a port refuses every connection until it is opened, and then leads on.

It is bound from the start, so that nobody else can take it meanwhile.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from surefoot.testing import FaultyGateway

__all__ = ["LatePort"]

_PATIENCE = 5.0


class LatePort:
    """A way to a gateway that does not exist yet."""

    def __init__(self, gateway: FaultyGateway) -> None:
        self._to = gateway
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        """The gateway's endpoint, by way of this port."""
        port = self._listener.getsockname()[1]
        return self._to.url.replace(self._to.origin, f"http://127.0.0.1:{port}")

    def open(self) -> None:
        """Let connections in from now on."""
        self._listener.listen()
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for end in (self._listener, *self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _start(self, run: object, *given: object) -> None:
        assert callable(run)
        thread = threading.Thread(target=run, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        host, _, port = self._to.origin.removeprefix("http://").partition(":")
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection((host, int(port)), _PATIENCE)
                self._open += [client, server]
                self._start(self._pump, client, server)
                self._start(self._pump, server, client)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            source.settimeout(_PATIENCE)
            while piece := source.recv(65536):
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
