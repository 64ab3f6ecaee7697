"""R105, R107, R108, B8. The four kinds: what they put on the wire, and what they refuse."""

from __future__ import annotations

import traceback
from base64 import b64encode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.credentials import ApiKey, Basic, Bearer, Credential, Headers
from surefoot.errors import CredentialError, InvalidCredentialError

VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1)
ONE_VALUE: dict[str, Callable[[str], Credential]] = {
    "bearer": Bearer,
    "api-key": ApiKey,
    "basic": lambda value: Basic("someone", value),
    "headers": lambda value: Headers({"x-one": "fine", "x-two": value}),
}

LAID_OUT: list[tuple[Credential, tuple[tuple[bytes, bytes], ...], tuple[bytes, ...]]] = [
    (Bearer("tok"), ((b"authorization", b"Bearer tok"),), (b"tok",)),
    (ApiKey("k1"), ((b"x-api-key", b"k1"),), (b"k1",)),
    (ApiKey("k1", header="X-Key"), ((b"x-key", b"k1"),), (b"k1",)),
    (
        Basic("user", "pass word"),
        ((b"authorization", b"Basic " + b64encode(b"user:pass word")),),
        (b"pass word", b64encode(b"user:pass word")),
    ),
    (
        Basic("key-as-user", ""),
        ((b"authorization", b"Basic " + b64encode(b"key-as-user:")),),
        (b"key-as-user", b64encode(b"key-as-user:")),
    ),
    (
        Headers({"X-Tenant-Key": "a\tb", "Authorization": "Special c d"}),
        ((b"x-tenant-key", b"a\tb"), (b"authorization", b"Special c d")),
        (b"a\tb", b"Special c d"),
    ),
]

BAD_VALUES = [
    ("", "empty"),
    ("CANARY\n", "end with a line break"),
    ("CANARY\r\n", "end with a line break"),
    (" CANARY", "begin or end with a blank"),
    ("CANARY ", "begin or end with a blank"),
    ("CANARY\t", "begin or end with a blank"),
    ("CAN\x00ARY", "control character"),
    ("CAN\nARY", "control character"),
    ("CAN\r\nx-evil: ARY", "control character"),
    ("CAN\x0bARY", "control character"),
    ("CANARY\x7f", "control character"),
    ("CANARY\x1f", "control character"),
    ("CANARY\xe9", "outside ASCII"),
    ("CANARY\u0665", "outside ASCII"),
    ("CANARY\ud800", "outside ASCII"),
]

BAD_NAMES = ["", "x key", "x-key:", "x\nkey", "x-ké", "Host", "CONTENT-LENGTH", "mcp-session-id"]


@pytest.mark.parametrize(("credential", "lines", "secrets"), LAID_OUT)
def test_a_credential_lays_out_its_lines_and_names_its_secrets(
    credential: Credential, lines: tuple[tuple[bytes, bytes], ...], secrets: tuple[bytes, ...]
) -> None:
    """R105, B7. Lower-case names; the secrets are what the scrub must search for."""
    assert credential.lines() == lines
    assert credential.secrets() == secrets


def test_lines_are_laid_out_once_and_kept() -> None:
    """R105. Every attempt is handed the same tuple."""
    credential = Bearer("tok")
    assert credential.lines() is credential.lines()
    assert credential.secrets() is credential.secrets()


@pytest.mark.parametrize("kind", ONE_VALUE)
@pytest.mark.parametrize(("value", "rule"), BAD_VALUES)
def test_a_value_that_no_header_can_hold_is_refused_by_its_rule(
    kind: str, value: str, rule: str
) -> None:
    """B8. The error names the rule broken, is a ValueError too, and shows nothing."""
    if kind == "basic" and not value:
        return  # RFC 7617 allows an empty password
    with pytest.raises(InvalidCredentialError, match=rule) as caught:
        ONE_VALUE[kind](value)
    assert isinstance(caught.value, CredentialError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "ARY" not in str(caught.value)
    assert "ARY" not in repr(caught.value)


@pytest.mark.parametrize("value", ["Bearer CANARY", "bearer CANARY", "BEARER  CANARY"])
def test_a_token_that_brings_the_word_bearer_is_refused(value: str) -> None:
    """B8. It would be sent twice, and the server's 401 says nothing of it."""
    with pytest.raises(InvalidCredentialError, match="the token alone") as caught:
        Bearer(value)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("value", ["Bearer", "Bearer-CANARY", "BearerCANARY", "x Bearer CANARY"])
def test_a_token_that_only_looks_like_that_is_one(value: str) -> None:
    """B8. The rule is about the word and the blank after it."""
    assert Bearer(value).lines() == ((b"authorization", f"Bearer {value}".encode()),)


@pytest.mark.parametrize("value", [None, b"CANARY", 7, ["CANARY"]])
@pytest.mark.parametrize("kind", ONE_VALUE)
def test_a_value_that_is_no_text_is_refused_without_an_echo(kind: str, value: object) -> None:
    """B8, R72. A wrong type is a broken rule like any other."""
    wrong: str = value  # pyright: ignore[reportAssignmentType]
    with pytest.raises(InvalidCredentialError, match="must be a str") as caught:
        ONE_VALUE[kind](wrong)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_header_name_is_a_token_and_frames_no_message(name: str) -> None:
    """B8. RFC 9110 sections 5.1 and 5.6.2; a vended line must not move the message's borders."""
    with pytest.raises(InvalidCredentialError, match="header: must"):
        ApiKey("value", header=name)
    with pytest.raises(InvalidCredentialError, match="a header's name: must"):
        Headers({name: "value"})


def test_swapped_name_and_value_show_neither() -> None:
    """B8. ``ApiKey("x-api-key", header=secret)`` is an easy mistake."""
    with pytest.raises(InvalidCredentialError) as caught:
        ApiKey("x-api-key", header="CANARY with blanks")
    told = "".join(traceback.TracebackException.from_exception(caught.value).format())
    assert "CANARY with blanks" not in told.replace('header="CANARY with blanks"', "")


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda: Basic("a:b", "c"), "colon"),
        (lambda: Basic("", ""), "both be empty"),
        (lambda: Headers({}), "must not be empty"),
        (lambda: Headers({"X-A": "1", "x-a": "2"}), "twice"),
        (lambda: Headers([("x", "y")]), "must be a mapping"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_parts_that_cannot_go_together_are_refused(
    build: Callable[[], Credential], rule: str
) -> None:
    """B8. RFC 7617 section 2, and what a mapping can get wrong."""
    with pytest.raises(InvalidCredentialError, match=rule):
        build()


@pytest.mark.parametrize("kind", ONE_VALUE)
def test_no_frame_of_ours_keeps_a_refused_value(kind: str) -> None:
    """B8, R108. Captured locals of our frames are clean; the caller's frame shows the control."""
    planted = "CANARY\n"
    try:
        ONE_VALUE[kind](planted)
    except InvalidCredentialError as error:
        captured = traceback.TracebackException.from_exception(error, capture_locals=True)
    else:
        pytest.fail("the value was accepted")
    ours = [frame for frame in captured.stack if "surefoot" in frame.filename.split("tests")[-1]]
    theirs = [frame for frame in captured.stack if frame.name == _here()]
    assert not [
        frame for frame in ours if "CANARY" in str(frame.locals) and "src" in frame.filename
    ]
    assert [frame for frame in theirs if "CANARY" in str(frame.locals)]
    assert [frame for frame in ours if "src" in frame.filename], "our frames were looked at"


def _here() -> str:
    return "test_no_frame_of_ours_keeps_a_refused_value"


@given(VISIBLE)
def test_every_visible_text_is_carried_byte_for_byte(token: str) -> None:
    """B8. What is allowed goes out as it came."""
    assert Bearer(token).lines() == ((b"authorization", f"Bearer {token}".encode()),)
    assert ApiKey(token).lines() == ((b"x-api-key", token.encode()),)


@given(st.text())
def test_no_text_is_both_accepted_and_unfit_for_a_header(token: str) -> None:
    """B8. Accepted means: visible ASCII at both ends, visible or blank or tab between."""
    fit = (
        bool(token)
        and all("\x20" <= c <= "\x7e" or c == "\t" for c in token)
        and token[0] not in " \t"
        and token[-1] not in " \t"
    )
    try:
        Bearer(token)
    except InvalidCredentialError:
        assert not fit
    else:
        assert fit
