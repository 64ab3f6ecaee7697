"""R71, R72, R108. What is refused when it is built is in no frame of the error that says so.

A crash report prints the arguments of every frame, and the wrong thing is most often the secret
itself: a bare token, a password in a URL, a header that holds a credential.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any, Final

import pytest

from support.leaks import caught
from surefoot import Gateway, agentcore
from surefoot.credentials import (
    Bearer,
    ClientCredentials,
    CommandCredentials,
    EnvironmentCredentials,
    FileCredentials,
    MissingCredentials,
    RetryingCredentials,
    SharedCredentials,
    StaticCredentials,
    adopt,
    unseen,
)
from surefoot.testing import AuditChannel, SecretLeakError, assert_no_secret

CANARY: Final = "CANARY-77ab-option"
URL: Final = "https://gateway.example.com/mcp"
ARN: Final = "arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/orders-Ab12"
HEADERS: Final = {"authorization": f"Bearer {CANARY}"}
SKIP: Final[tuple[AuditChannel, ...]] = ("objects", "requests", "tasks")


async def vend(_: object) -> Bearer:
    return Bearer("an-ordinary-token")


def protected() -> Gateway:
    return Gateway(URL, credentials=vend)


REFUSED: Final[dict[str, Callable[[], object]]] = {
    "a bare token": lambda: Gateway(URL, credentials=CANARY),  # type: ignore[arg-type]
    "a mapping": lambda: Gateway(URL, credentials={"token": CANARY}),  # type: ignore[arg-type]
    "a password in the URL": lambda: Gateway(f"https://user:{CANARY}@gateway.example.com/mcp"),
    "no URL": lambda: Gateway(f"ftp://gateway.example.com/{CANARY}"),
    "a credential header": lambda: Gateway(URL, credentials=vend, headers=HEADERS),
    "a header with a line end": lambda: Gateway(URL, headers={"x-tenant": f"{CANARY}\n"}),
    "a text as signer": lambda: Gateway(URL, signer=CANARY),  # type: ignore[arg-type]
    "both of a user": lambda: protected().acting_for(user_token=CANARY, user_id=CANARY),
    "bytes of a user": lambda: protected().acting_for(user_token=CANARY.encode()),  # type: ignore[arg-type]
    "a header of a client": lambda: protected().http_client(headers=HEADERS),
    "a header of a factory": lambda: protected().http_client_factory(headers=HEADERS),
    "a client's own option": lambda: protected().http_client(proxy=f"ftp://u:{CANARY}@h"),
    "shared": lambda: SharedCredentials(CANARY),
    "retrying": lambda: RetryingCredentials(CANARY),
    "static": lambda: StaticCredentials({"a": CANARY}),  # type: ignore[dict-item]
    "environment": lambda: EnvironmentCredentials("THE_TOKEN", kind=CANARY),  # type: ignore[arg-type]
    "file": lambda: FileCredentials("token", max_bytes=CANARY),  # type: ignore[arg-type]
    "command": lambda: CommandCredentials(["vault", CANARY], timeout=-1),
    "missing": lambda: MissingCredentials(option=f"{CANARY} "),
    "adopted": lambda: adopt(CANARY, url=URL),
    "client credentials": lambda: ClientCredentials(
        URL, issuer=URL, client_id="me", client_secret=CANARY, timeout=-1
    ),
    "keys of AWS": lambda: agentcore.SigV4Signer(region="us-west-2", aws=CANARY),
    "a door's keys": lambda: agentcore.runtime(ARN, aws=CANARY),
    "a door's URL": lambda: agentcore.gateway(f"https://u:{CANARY}@a.example", region="us-west-2"),
    "a workload's token": lambda: agentcore.AgentCoreIdentity(
        region="us-west-2", workload_token=CANARY, kind="neither"  # type: ignore[arg-type]
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_in_no_frame(what: str) -> None:
    """R72, R108. Nor in a cause, a context, the text or a pickle of the error."""
    with pytest.raises((TypeError, ValueError)) as refused:
        REFUSED[what]()
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None
    assert_no_secret(CANARY, refused.value, skip=SKIP)


def test_a_constructor_without_it_shows_what_it_was_given() -> None:
    """R109. The control: the same function, as it is and with its frames kept back."""

    def build(token: str, *, kind: str = "bearer") -> str:
        """Refuse."""
        held = token.upper()
        message = f"token: must be longer, and not a {kind}"
        raise ValueError(message) from KeyError(held)

    with pytest.raises(SecretLeakError):
        assert_no_secret(CANARY.upper(), caught(build, CANARY), skip=SKIP)
    error = caught(unseen(build), CANARY)
    assert_no_secret([CANARY, CANARY.upper()], error, skip=SKIP)
    assert str(error) == "token: must be longer, and not a bearer"
    assert len(traceback.extract_tb(error.__traceback__)) == 1


def test_a_function_is_otherwise_what_it_was() -> None:
    """R71. Its name, its signature, what it returns, and what it says of a wrong argument."""

    def build(token: str, *, kind: str = "bearer") -> str:
        """Say what it is."""
        return f"{kind} {token}"

    wrapped: Any = unseen(build)
    assert wrapped("x", kind="basic") == "basic x"
    assert (wrapped.__name__, wrapped.__doc__) == ("build", "Say what it is.")
    assert inspect.signature(wrapped) == inspect.signature(build)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        wrapped("x", other=1)
    assert list(inspect.signature(Gateway).parameters)[:2] == ["url", "name"]
