"""The law of this file: a question to AgentCore Identity blocks a thread, and says nothing.

boto3 is asked in a thread, once: its own retries are off, because a series that nobody counts would
run below ours. What comes back is a value: the answer, or a word for what went wrong; the SDK's
text never crosses, because it quotes what was sent, and what it prints is dropped (`_silence.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import anyio.to_thread

from surefoot.credentials import TransientCredentialError, sealed
from surefoot.errors import CredentialError

from ._address import SERVICE
from ._extra import load
from ._silence import quieten, silence

__all__ = ["NOT_VALID", "Answer", "IdentityCalls", "Trouble"]

NOT_VALID: Final = "AgentCore Identity refused the request as not valid"
_CONNECTIONS: Final = 40
"""As many as anyio runs threads by default; with fewer, urllib3 would warn of a full pool."""

_TRANSIENT_CODES: Final = frozenset(
    {"ThrottlingException", "TooManyRequestsException", "InternalServerException",
     "ServiceUnavailableException"}
)  # fmt: skip
_FINAL_CODES: Final[Mapping[str, str]] = {
    "AccessDeniedException": "AgentCore Identity denied access",
    "UnauthorizedException": "AgentCore Identity did not accept the caller",
    "ResourceNotFoundException": "AgentCore Identity knows no such workload or provider",
    "ValidationException": NOT_VALID,
    "ExpiredTokenException": "the AWS credentials have expired",
    "UnrecognizedClientException": "the AWS credentials are not valid",
    "InvalidSignatureException": "the AWS credentials are not valid",
}
_TRANSIENT_ERRORS: Final = frozenset(
    {"HTTPClientError", "ConnectionError", "CredentialRetrievalError"}
)
"""Names in the MRO of botocore's errors after which asking again may help."""

Answer = Mapping[str, Any]
"""What an operation answered."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there is no answer: our own words."""

    reason: str
    transient: bool

    def error(self, service: str) -> CredentialError:
        """The error that says so."""
        kind = TransientCredentialError if self.transient else CredentialError
        return kind(self.reason, service=service)


class IdentityCalls:
    """Asks the operations of AgentCore Identity.

    Args:
        region: The region.
        aws: A boto3 session, or ``None`` for a fresh one with the default chain.
        endpoint: Another origin than the region's public one.
        timeout: Seconds to connect, and seconds of silence.

    Raises:
        ImportError: boto3 is not installed.
        TypeError: ``aws`` is no boto3 session.
    """

    __slots__ = ("_client", "_lock", "_make")

    def __init__(self, *, region: str, aws: object, endpoint: str | None, timeout: float) -> None:
        boto3 = load("boto3")
        config = load("botocore.config").Config(
            connect_timeout=timeout,
            read_timeout=timeout,
            max_pool_connections=_CONNECTIONS,
            retries={"total_max_attempts": 1, "mode": "standard"},
        )
        if aws is not None and not callable(getattr(aws, "client", None)):
            del aws
            raise TypeError("aws: must be a boto3 session, or None for the default chain")
        session: Any = aws

        def make() -> Any:
            return (session or boto3.Session()).client(
                SERVICE, region_name=region, endpoint_url=endpoint, config=config
            )

        self._make = make
        self._lock = threading.Lock()
        self._client: Callable[[], Any] = sealed(None)

    async def ask(self, operation: str, **given: Any) -> Answer | Trouble:
        """Ask one operation, by its Python name; ``None`` stands for "not given"."""
        wanted = {name: value for name, value in given.items() if value is not None}
        asked = sealed(wanted)
        del given, wanted
        answer = await anyio.to_thread.run_sync(
            self._blocking, operation, asked, abandon_on_cancel=True
        )
        return answer()

    def _blocking(
        self, operation: str, asked: Callable[[], dict[str, Any]]
    ) -> Callable[[], Answer | Trouble]:
        """Ask; what comes back is sealed, because the future of a thread shows its result."""
        with silence():
            try:
                return sealed(cast("Answer", getattr(self._connected(), operation)(**asked())))
            except Exception as error:  # noqa: BLE001 - its text quotes what was sent
                return sealed(_trouble(error))

    def _connected(self) -> Any:
        """The client, made once: making one reads files for a tenth of a second."""
        with self._lock:
            client = self._client()
            if client is None:
                client = self._make()
                self._client = sealed(client)
                quieten()
        return client


def _trouble(error: Exception) -> Trouble:
    """What went wrong, by code and class alone."""
    response: Any = getattr(error, "response", None)
    details: Any = (
        cast("dict[str, Any]", response).get("Error") if isinstance(response, dict) else None
    )
    if isinstance(details, dict):
        code = cast("dict[str, Any]", details).get("Code")
        status = _status(cast("dict[str, Any]", response))
        if code in _TRANSIENT_CODES or status == 429 or status >= 500:
            return Trouble("AgentCore Identity is busy or failing", transient=True)
        known = _FINAL_CODES.get(code) if isinstance(code, str) else None
        return Trouble(known or f"AgentCore Identity refused with HTTP {status}", transient=False)
    names = {base.__name__ for base in type(error).__mro__}
    if names & _TRANSIENT_ERRORS:
        return Trouble("AgentCore Identity could not be reached", transient=True)
    if "NoCredentialsError" in names or "PartialCredentialsError" in names:
        return Trouble("no AWS credentials were found", transient=False)
    if "ParamValidationError" in names:
        return Trouble("AgentCore Identity would not accept the request", transient=False)
    return Trouble(f"asking AgentCore Identity raised {type(error).__name__}", transient=False)


def _status(response: dict[str, Any]) -> int:
    metadata: Any = response.get("ResponseMetadata")
    status: Any = (
        cast("dict[str, Any]", metadata).get("HTTPStatusCode")
        if isinstance(metadata, dict)
        else None
    )
    return status if isinstance(status, int) else 0
