"""R12, R27, R46, R117, B8. The exception tree is as drawn; each is caught as what it is."""

from __future__ import annotations

import re

import pytest

import surefoot.errors as room
from surefoot.errors import (
    AnswerTooLargeError,
    AuthorizationRequiredError,
    CredentialError,
    DeadlineExceededError,
    InvalidCredentialError,
    MayHaveRunError,
    NotSentError,
    RateLimitedError,
    SessionLostError,
    SurefootError,
    ToolError,
    UnreadableAnswerError,
)


def drawn() -> dict[str, str]:
    """Each class of the picture in the docstring, and the one it hangs from."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in str(room.__doc__).splitlines():
        found = re.match(r"^([ │├└─]*)([A-Z][A-Za-z]+)(\s{2}|$)", line)
        if found is None:
            continue
        depth = len(found[1]) // 4
        path = [*path[:depth], found[2]]
        parents[found[2]] = path[depth - 1] if depth else ""
    return parents


def test_the_picture_can_be_read() -> None:
    """R27. The positive control: a picture that yields nothing would agree with any tree."""
    assert drawn()["SurefootError"] == "Exception"
    assert drawn()["AnswerTooLargeError"] == "UnreadableAnswerError"
    assert len(drawn()) == 13


def test_the_tree_is_as_drawn() -> None:
    """R27, R46, R117, B8. Every class that is drawn exists, and no other is handed out."""
    tree = drawn()
    assert set(room.__all__) == set(tree) - {"Exception"}
    for name, parent in tree.items():
        if name != "Exception":
            kind: type[BaseException] = getattr(room, name)
            assert kind.__bases__[0].__name__ == parent


@pytest.mark.parametrize("name", room.__all__)
def test_every_error_is_one_of_ours_and_says_what_it_means(name: str) -> None:
    """R12. One root for whoever catches them all; cancellation is not among them."""
    kind: type[BaseException] = getattr(room, name)
    assert issubclass(kind, SurefootError)
    assert issubclass(kind, Exception)
    assert kind.__doc__
    assert kind.__module__ == "surefoot.errors"


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (DeadlineExceededError, TimeoutError),
        (DeadlineExceededError, OSError),
        (InvalidCredentialError, CredentialError),
        (InvalidCredentialError, ValueError),
        (AnswerTooLargeError, UnreadableAnswerError),
    ],
)
def test_what_reads_as_a_builtin_is_one(
    kind: type[SurefootError], also: type[BaseException]
) -> None:
    """R44, R46, B8. ``except TimeoutError`` catches our deadline, as it would any other."""
    assert issubclass(kind, also)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (MayHaveRunError, TimeoutError),
        (MayHaveRunError, RateLimitedError),
        (RateLimitedError, MayHaveRunError),
        (DeadlineExceededError, MayHaveRunError),
        (AuthorizationRequiredError, CredentialError),
        (CredentialError, ValueError),
        (SessionLostError, MayHaveRunError),
        (NotSentError, MayHaveRunError),
        (MayHaveRunError, NotSentError),
        (ToolError, UnreadableAnswerError),
    ],
)
def test_what_means_something_else_is_not_caught_with_it(
    kind: type[SurefootError], other: type[BaseException]
) -> None:
    """R3, R27, R61. "It may have run" is never mistaken for "it did not"."""
    assert not issubclass(kind, other)
