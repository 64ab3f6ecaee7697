"""R108, B7. What is raised and what is handed on is searched to the bottom, and found there."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest
from pydantic import BaseModel

from support.leaks import CANARY, NOTHING_ALIVE, caught, leaky
from surefoot.errors import CredentialError
from surefoot.testing import SecretLeakError, assert_no_secret


def pickling(text: str) -> object:
    """One that shows nothing but its pickle."""

    def reduced(_: object) -> tuple[object, ...]:
        return str, (text,)

    made: object = type("Fake", (), {"__module__": "surefoot.fake", "__reduce__": reduced})()
    return made


class Model(BaseModel):
    """What an SDK hands to its client."""

    text: str


def attributed() -> CredentialError:
    error = CredentialError("a fixed reason")
    error.response = CANARY  # type: ignore[attr-defined]
    return error


def noted() -> CredentialError:
    error = CredentialError("a fixed reason")
    error.add_note(CANARY)
    return error


def behind(attribute: str) -> CredentialError:
    error = CredentialError("a fixed reason")
    setattr(error, attribute, ValueError(CANARY))
    return error


RAISED: list[tuple[str, Callable[[], BaseException]]] = [
    ("message", lambda: ValueError(CANARY)),
    ("an argument", lambda: ValueError("x", {"token": CANARY})),
    ("an attribute", attributed),
    ("a note", noted),
    ("its cause", lambda: behind("__cause__")),
    ("its context", lambda: behind("__context__")),
    ("a group", lambda: ExceptionGroup("x", [OSError(), ValueError(CANARY)])),
    ("a unicode error", lambda: caught(f"{CANARY}\xe9".encode, "ascii")),
    ("a local", lambda: caught(leaky("def f(v):\n raise OSError"), CANARY)),
    (
        "a local at depth",
        lambda: caught(leaky("def f(v):\n return g(v)\ndef g(w):\n del w; raise OSError"), CANARY),
    ),
    ("a local that holds it", lambda: caught(leaky("def f(v):\n raise OSError"), [{"k": CANARY}])),
    (
        "a request in a local",
        lambda: caught(
            leaky(
                "def f(v):\n r = httpx2.Request('GET', 'http://x', headers={'k': v}); del v; 1/0"
            ),
            CANARY,
        ),
    ),
    (
        "a local of the context of a cause",
        lambda: caught(
            leaky(
                "def f(v):\n try: g(v)\n except OSError as e:\n  del v; raise CredentialError('x') "
                "from e\ndef g(w):\n try: 1/0\n except ArithmeticError: raise OSError"
            ),
            CANARY,
        ),
    ),
]

HANDED: list[tuple[str, Callable[[], object]]] = [
    ("text", lambda: f"x{CANARY}x"),
    ("bytes", CANARY.encode),
    ("a bytearray", lambda: bytearray(CANARY.encode())),
    ("a key", lambda: {CANARY: 1}),
    ("deep in containers", lambda: [({"a": [{"b": (CANARY,)}]},)]),
    ("a set", lambda: {CANARY}),
    ("a response's body", lambda: httpx2.Response(200, text=CANARY)),
    ("a response's headers", lambda: httpx2.Response(200, headers={"x-echo": CANARY})),
    (
        "a response's request",
        lambda: httpx2.Response(
            200, request=httpx2.Request("GET", "http://x", headers={"authorization": CANARY})
        ),
    ),
    ("a model", lambda: Model(text=CANARY)),
    ("a pickle alone", lambda: pickling(CANARY)),
]


@pytest.mark.parametrize(("where", "error"), RAISED, ids=[where for where, _ in RAISED])
def test_what_is_raised_is_searched_to_the_bottom(
    where: str, error: Callable[[], BaseException]
) -> None:
    """R108. Message, arguments, attributes, notes, chain, and the locals of every frame."""
    del where
    made = error()
    with pytest.raises(SecretLeakError) as failed:
        assert_no_secret(CANARY, made, skip=NOTHING_ALIVE)
    assert {leak.channel for leak in failed.value.leaks} == {"exceptions"}


@pytest.mark.parametrize(("what", "artefact"), HANDED, ids=[what for what, _ in HANDED])
def test_what_is_handed_on_is_searched_whole(what: str, artefact: Callable[[], object]) -> None:
    """B7, R109. Whatever the client was given, and what it holds."""
    del what
    with pytest.raises(SecretLeakError) as failed:
        assert_no_secret(CANARY, named={"client": artefact()}, skip=NOTHING_ALIVE)
    assert {leak.channel for leak in failed.value.leaks} == {"artefacts"}
    assert all(leak.place.startswith("client") for leak in failed.value.leaks)
