"""The law of this file: a proxy on loopback hands each request on unread, and remembers its target.

One request for each connection, plain HTTP only: enough to see which way a client went.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

__all__ = ["LoopbackProxy"]

_PATIENCE = 5.0


class LoopbackProxy:
    """A forward proxy in threads of its own; `asked` holds the targets that it was given."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """What `HTTP_PROXY` would say."""
        host, port = self._listener.getsockname()[:2]
        return f"http://{host}:{port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _start(self, run: Callable[..., None], *given: object) -> None:
        thread = threading.Thread(target=run, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._start(self._relay, self._listener.accept()[0])

    def _relay(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(_PATIENCE)
            head, body = _read(client)
            line, _, rest = head.partition(b"\r\n")
            method, target, version = line.split(b" ")
            self.asked.append(target.decode())
            parts = urlsplit(target.decode())
            path = parts.path.encode() or b"/"
            asked = b" ".join((method, path, version))
            to = (parts.hostname or "", parts.port or 80)
            with socket.create_connection(to, _PATIENCE) as server:
                server.sendall(asked + b"\r\nConnection: close\r\n" + _kept(rest) + body)
                first, _, more = server.recv(65536).partition(b"\r\n")
                piece = first + b"\r\nConnection: close\r\n" + more
                while piece:
                    client.sendall(piece)
                    piece = server.recv(65536)


def _read(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += client.recv(65536) or _gone()
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ),
        0,
    )
    while len(body) < length:
        body += client.recv(65536) or _gone()
    return head, body


def _gone() -> bytes:
    raise ConnectionError


def _kept(lines: bytes) -> bytes:
    kept = [line for line in lines.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join(kept) + b"\r\n\r\n"
