"""R107, R108, B8. Whoever looks at what holds a secret sees nothing; each look has its control."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import json
import pickle
import pprint
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.credentials import (
    ApiKey,
    AuthorizationRequired,
    Basic,
    Bearer,
    Blind,
    CredentialRequest,
    Headers,
    Issued,
    Secret,
)

CANARY = "CANARY-5f0c1e"

HOLDERS: dict[str, Callable[[str], Blind]] = {
    "Bearer": Bearer,
    "ApiKey": ApiKey,
    "Basic": lambda value: Basic("user", value),
    "Headers": lambda value: Headers({"x-one": value}),
    "Secret": Secret,
    "Issued": lambda value: Issued(Bearer(value), expires_in=60),
    "AuthorizationRequired": lambda value: AuthorizationRequired(
        "gateway", f"https://issuer.example/consent?c={value}", f"urn:{value}"
    ),
}


@dataclasses.dataclass
class Box:
    """A user's own dataclass around one."""

    held: object


def _slots(value: Any) -> str:
    names = [n for c in type(value).__mro__ for n in getattr(c, "__slots__", ()) if n[:2] != "__"]
    return repr([getattr(value, name, None) for name in names])


def _vars(value: Any) -> str:
    return repr(getattr(value, "__dict__", {}))


LOOKS: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "str": str,
    "format": lambda value: f"{value}",
    "format with a width": lambda value: f"{value:>80}",
    "percent": lambda value: "%s %r" % (value, value),  # noqa: UP031
    "ascii": ascii,
    "in a list": lambda value: repr([value, {"k": value}]),
    "pprint": pprint.pformat,
    "json default": lambda value: json.dumps({"v": value}, default=repr),
    "__dict__": _vars,
    "slots": _slots,
    "asdict": lambda value: repr(dataclasses.asdict(Box(value))),
    "replace": lambda value: repr(dataclasses.replace(Box(value))),
    "copy": lambda value: repr(copy.copy(value)),
    "deepcopy": lambda value: repr(copy.deepcopy([value])),
    "dir": lambda value: repr(dir(value)),
}


class Open:
    """The control: a holder as people write it."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Open({self.value})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> tuple[object, ...]:
        return Open, (self.value,)


class SlottedOpen(Open):
    """The control for the walk over slots."""

    __slots__ = ("held",)

    def __init__(self, value: str) -> None:
        super().__init__(value)
        self.held = value
        setattr(self, f"by_{value}", True)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_look_shows_nothing(holder: str, look: str) -> None:
    """R107. And the same look finds it in an ordinary object."""
    assert CANARY not in LOOKS[look](HOLDERS[holder](CANARY))
    assert CANARY in LOOKS[look](SlottedOpen(CANARY))


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_walk_over_members_shows_no_credential(holder: str) -> None:
    """R107. The URL of a consent is a field on purpose (R117); no credential is one."""
    if holder == "AuthorizationRequired":
        return
    assert CANARY not in repr(inspect.getmembers(HOLDERS[holder](CANARY)))
    assert CANARY in repr(inspect.getmembers(SlottedOpen(CANARY)))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("holder", HOLDERS)
def test_pickling_is_refused_and_says_why(holder: str, protocol: int) -> None:
    """R107. Alone, in a container, and as a state."""
    value = HOLDERS[holder](CANARY)
    for what in (value, [value], Box(value), SimpleNamespace(value=value)):
        with pytest.raises(TypeError, match="holds a secret and does not pickle") as caught:
            pickle.dumps(what, protocol)
        assert CANARY not in str(caught.value)
    with pytest.raises(TypeError, match="holds a secret"):
        value.__getstate__()
    assert CANARY.encode() in pickle.dumps(Open(CANARY), protocol)


@pytest.mark.parametrize("holder", HOLDERS)
def test_two_are_equal_only_if_they_are_one(holder: str) -> None:
    """R107. Equality by value would let a table of guesses read it."""
    one, other = HOLDERS[holder](CANARY), HOLDERS[holder](CANARY)
    assert one == one  # noqa: PLR0124
    assert one != other
    assert copy.copy(one) is one
    assert copy.deepcopy(one) is one
    assert len({one, other}) == 2


@pytest.mark.parametrize("holder", HOLDERS)
def test_it_cannot_be_changed_and_can_be_watched(holder: str) -> None:
    """R107. Frozen, and weakly referable, so that a test can see it die."""
    value = HOLDERS[holder](CANARY)
    for name in ("_open", "credential", "anything"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(value, name, None)
        with pytest.raises(AttributeError, match="cannot be changed"):
            delattr(value, name)
    watched = weakref.ref(value)
    del value
    assert watched() is None


def test_a_finished_task_shows_nothing() -> None:
    """R107, R108. asyncio prints the result of a finished task; the control shows that it does."""

    async def vended(value: object) -> object:
        return value

    async def look(value: object) -> str:
        task = asyncio.create_task(vended(value))
        await task
        return repr(task)

    assert CANARY not in asyncio.run(look(Issued(Bearer(CANARY), expires_in=5)))
    assert CANARY not in asyncio.run(look(Bearer(CANARY)))
    assert CANARY in asyncio.run(look(CANARY))


def test_a_request_hides_the_users_token_and_name() -> None:
    """R107. The request is printed by whoever debugs a provider."""
    request = CredentialRequest(mode="user", principal="ann", user_token=Secret(CANARY))
    assert CANARY not in repr(request)
    assert "ann" not in repr(request)
    assert request.user_token is not None
    assert request.user_token.reveal() == CANARY


@pytest.mark.parametrize("value", [None, b"CANARY", 3])
def test_a_secret_is_text(value: Any) -> None:
    """R72. Refused without an echo."""
    with pytest.raises(TypeError, match="value: must be a str") as caught:
        Secret(value)
    assert "CANARY" not in str(caught.value)


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8))
def test_no_random_secret_is_seen(secret: str) -> None:
    """R107, invariant 11. What is longer than our own fixed texts cannot hide in them."""
    marked = f"~{secret}~"
    for build in HOLDERS.values():
        if build is HOLDERS["AuthorizationRequired"]:
            continue
        value = build(marked)
        for name, look in LOOKS.items():
            assert marked not in look(value), name
