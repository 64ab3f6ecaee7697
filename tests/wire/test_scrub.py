"""B7, R107, R108; invariant 11. What an attempt carried as a secret does not come back."""

from __future__ import annotations

import base64
import copy
import html
import json
import pickle
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.wire import MARK, MIN_SECRET, Scrub
from surefoot.wire.strict_json import dumps, loads

TOKEN = b"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJDQU5BUlkifQ.c2lnbmF0dXJlLXRoYXQtaXMtcmFuZG9t"
AWS = b"IQoJb3JpZ2luX2VjEB0aCXVzLWVhc3Qt/+1//aBcD+eFgHiJkLmNoPqRsTuVwXyZ0123456789=="
PASSWORD = b'p"a\\ss/w+rd %x'
PUNCTUATION = b'!"/\\+ %&=\'"!'

UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

Spelling = Callable[[str], str]


def shifted(lead: str, tail: str, alphabet: str = "std") -> Spelling:
    def spell(secret: str) -> str:
        encode = base64.b64encode if alphabet == "std" else base64.urlsafe_b64encode
        return encode((lead + secret + tail).encode()).decode()

    return spell


def lower_percent(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), text)


def every_letter(text: str, form: str = "04x", step: int = 1) -> str:
    """As JSON may write any text, though few do."""
    return "".join(
        char if number % step and char not in '"\\' else f"\\u{ord(char):{form}}"
        for number, char in enumerate(text)
    )


def percent(text: str, step: int = 1) -> str:
    """As a URL may write any text, though few encode what needs no encoding."""
    return "".join(
        char if number % step and char in UNRESERVED else f"%{ord(char):02X}"
        for number, char in enumerate(text)
    )


def signs(form: str) -> Spelling:
    """What is no letter and no digit, in the form of another language."""
    return lambda text: "".join(
        char if char in UNRESERVED else form.format(ord(char)) for char in text
    )


SPELLINGS: dict[str, Spelling] = {
    "as it is": str,
    "JSON-escaped": lambda s: json.dumps(s)[1:-1],
    "JSON-escaped twice": lambda s: json.dumps(json.dumps(s)[1:-1])[1:-1],
    "JSON-escaped, slashes too": lambda s: json.dumps(s)[1:-1].replace("/", "\\/"),
    "every letter escaped": every_letter,
    "every letter escaped, upper case": lambda s: every_letter(s, "04X"),
    "every letter escaped, and once more": lambda s: json.dumps(every_letter(s))[1:-1],
    "every second letter escaped": lambda s: every_letter(s, step=2),
    "percent-encoded": lambda s: urllib.parse.quote(s, safe=""),
    "percent-encoded, lower case": lambda s: lower_percent(urllib.parse.quote(s, safe="")),
    "percent-encoded but for slashes": urllib.parse.quote,
    "as a form": urllib.parse.quote_plus,
    "percent-encoded twice": lambda s: urllib.parse.quote(urllib.parse.quote(s, safe=""), safe=""),
    "percent-encoded three times": signs("%2525{:02x}"),
    "every letter percent-encoded": percent,
    "every letter percent-encoded, lower case": lambda s: lower_percent(percent(s)),
    "every second letter percent-encoded": lambda s: percent(s, step=2),
    "every letter percent-encoded, and the signs of that": lambda s: percent(s).replace("%", "%25"),
    "every letter percent-encoded twice": lambda s: percent(percent(s)),
    "every letter percent-encoded three times": lambda s: percent(percent(percent(s))),
    "every letter percent-encoded, in a text in a text": lambda s: every_letter(percent(s)),
    "as HTML": html.escape,
    "as HTML, in hexadecimal digits": signs("&#x{:X};"),
    "as HTML, in decimal digits": signs("&#{};"),
    "as Python writes bytes": signs("\\x{:02x}"),
    "in hexadecimal digits": lambda s: s.encode().hex(),
    "in hexadecimal digits, upper case": lambda s: s.encode().hex().upper(),
    "base64, every letter percent-encoded": lambda s: percent(shifted("x", "")(s)),
    "base64": shifted("", ""),
    "base64, one byte in": shifted("x", ""),
    "base64, two bytes in": shifted("xy", ""),
    "base64 of a header": shifted("authorization: Bearer ", "\r\n"),
    "base64url": shifted("", "", "url"),
    "base64url, one byte in": shifted("x", "q", "url"),
    "base64url, two bytes in": shifted("xy", "qr", "url"),
    "base64 without padding": lambda s: shifted("", "")(s).rstrip("="),
    "base64, percent-encoded": lambda s: urllib.parse.quote(shifted("", "")(s), safe=""),
    "base64, every letter escaped": lambda s: every_letter(shifted("", "")(s)),
    "base64, slashes escaped": lambda s: shifted("x", "")(s).replace("/", "\\/"),
}
spellings = pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
secrets = pytest.mark.parametrize(
    "secret", [TOKEN, AWS, PASSWORD, PUNCTUATION, b"abcdefgh"], ids=lambda secret: secret[:12]
)


@secrets
@spellings
def test_a_secret_is_found_however_it_is_spelled(secret: bytes, spell: Spelling) -> None:
    """B7. In values and in keys, at any depth; what is around it stays."""
    spelled = spell(secret.decode())
    value = {"a": [f"before {spelled} after", {spelled: 1}], "untouched": "text"}
    clean, hits = Scrub([secret])(dumps(value))
    found: Any = loads(clean)
    assert hits == 2
    assert spelled not in json.dumps(found, ensure_ascii=False)
    assert found["a"][0].startswith("before ")
    assert found["a"][0].endswith(" after")
    assert MARK in found["a"][0]
    assert found["untouched"] == "text"


@secrets
@spellings
def test_what_was_cleaned_is_canonical_and_stays_as_it_is(secret: bytes, spell: Spelling) -> None:
    """B7, R96."""
    scrub = Scrub([secret])
    clean, _ = scrub(dumps([spell(secret.decode())]))
    assert dumps(loads(clean)) == clean
    assert scrub(clean) == (clean, 0)


any_secret = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=8, max_size=90
).map(str.strip)


@given(
    any_secret.filter(lambda s: len(s) >= 8 and not re.match(r"[A-Za-z][A-Za-z0-9-]* +\S", s)),
    st.sampled_from(sorted(SPELLINGS)),
    st.text(max_size=5),
    st.text(max_size=5),
)
def test_any_secret_is_found_in_any_spelling(
    secret: str, spelling: str, before: str, after: str
) -> None:
    """B7; invariant 11."""
    spelled = SPELLINGS[spelling](secret)
    value = ["".join(c for c in text if c.isascii()) for text in (before, after)]
    clean, hits = Scrub([secret.encode()])(dumps({"k": f"{value[0]}{spelled}{value[1]}"}))
    assert hits >= 1
    assert secret not in json.dumps(loads(clean))
    assert spelled not in str(loads(clean))


@pytest.mark.unmeasured
@given(
    st.recursive(st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_what_holds_no_secret_comes_back_as_it_is(value: Any) -> None:
    """B7. The same bytes, not merely equal ones."""
    try:
        text = dumps(value)
    except ValueError:
        return
    except Exception as error:  # noqa: BLE001
        assert "surrogate" in str(error)  # noqa: PT017
        return
    clean, hits = Scrub([TOKEN, AWS, PASSWORD])(text)
    assert (clean, hits) == (text, 0)
    assert clean is text


def test_part_of_a_secret_is_no_secret() -> None:
    """B7. A needle alone, or a neighbour of one kind, changes nothing."""
    text = dumps([TOKEN[:-1].decode(), TOKEN[1:].decode(), TOKEN.decode().lower()])
    assert Scrub([TOKEN])(text) == (text, 0)
    header = dumps([TOKEN.partition(b".")[0].decode()])
    assert Scrub([TOKEN])(header) == (header, 0)


def test_every_occurrence_is_counted_and_every_secret_searched_for() -> None:
    """B7. A hit is recorded, without its value."""
    scrub = Scrub([TOKEN, AWS])
    text = dumps([f"{TOKEN.decode()} {TOKEN.decode()}", AWS.decode()])
    clean, hits = scrub(text)
    assert (hits, scrub.searched, scrub.too_short) == (3, 2, 0)
    assert loads(clean) == [f"{MARK} {MARK}", MARK]


def test_two_keys_that_become_the_same_stay_two() -> None:
    """B7, R95."""
    t = TOKEN.decode()
    clean, hits = Scrub([TOKEN])(
        dumps({t: 1, urllib.parse.quote(t + "/", safe=""): 2, "a": 3, f"%{t}": 4})
    )
    found: Any = loads(clean)
    assert hits == 3
    assert sorted(found.values()) == [1, 2, 3, 4]
    other = Scrub([AWS])(dumps({AWS.decode(): 1, urllib.parse.quote(AWS, safe=""): 2}))[0]
    assert loads(other) == {MARK: 1, f"{MARK} (2)": 2}


def test_a_secret_that_begins_in_an_escape_breaks_nothing() -> None:
    """B7. In canonical text a line end is backslash and n; the secret begins with n."""
    secret = b"nABCDEFGHIJKLMNOP"
    text = dumps({"a": "line\nABCDEFGHIJKLMNOP", "b": secret.decode()})
    clean, hits = Scrub([secret])(text)
    assert hits == 1
    assert loads(clean) == {"a": "line\nABCDEFGHIJKLMNOP", "b": MARK}


@pytest.mark.parametrize(
    "header",
    [b"Bearer " + TOKEN, b"bearer  " + TOKEN, b"Basic " + base64.b64encode(b"user:" + AWS)],
)
def test_of_a_whole_header_value_the_part_behind_the_scheme_is_the_secret(header: bytes) -> None:
    """B7. Who quotes a token does not always quote its scheme."""
    secret = header.split(b" ")[-1]
    clean, hits = Scrub([header])(dumps([f"token {secret.decode()}", header.decode()]))
    assert hits == 2
    assert secret not in clean


@pytest.mark.parametrize("length", range(10))
def test_a_secret_too_short_to_search_for_is_counted(length: int) -> None:
    """B7."""
    secret = b"a1b2c3d4e5"[:length]
    scrub = Scrub([secret])
    assert (scrub.searched, scrub.too_short) == (int(length >= MIN_SECRET), int(0 < length < 8))
    text = dumps([secret.decode()])
    assert scrub(text)[1] == int(length >= MIN_SECRET)


def test_the_same_secret_twice_is_one_and_none_is_none() -> None:
    """B7."""
    assert Scrub([TOKEN, TOKEN]).searched == 1
    nothing = Scrub([])
    assert nothing(b'["x"]') == (b'["x"]', 0)
    assert not nothing.holds(b"x")


@secrets
@spellings
def test_a_header_value_that_holds_a_secret_is_known(secret: bytes, spell: Spelling) -> None:
    """B7. Header values are no JSON."""
    value = spell(secret.decode()).encode()
    assert Scrub([secret]).holds(b"a=" + value + b"; x")
    assert not Scrub([secret]).holds(b"a=" + value[: len(value) // 2])


def test_a_scrub_shows_nothing_and_goes_nowhere() -> None:
    """B7, R107, R108. Not by repr, vars, format, pickle or copy."""
    scrub = Scrub([TOKEN])
    shown = f"{scrub} {scrub!r}"
    slots = " ".join(repr(getattr(scrub, name)) for name in Scrub.__slots__)
    for text in (shown, slots, repr(dir(scrub))):
        assert TOKEN.decode() not in text
        assert TOKEN.decode()[-20:] not in text
    assert not hasattr(scrub, "__dict__")
    for moved in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            moved(scrub)


def test_the_error_of_a_text_that_is_no_json_holds_no_secret() -> None:
    """R108. Only canonical text is ever given; the error is ours all the same."""
    with pytest.raises(Exception, match="unreadable") as caught:
        Scrub([TOKEN])(b"[" + TOKEN)
    assert TOKEN.decode() not in repr(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("lead", ["", "x", "xy"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("width", [60, 64, 76])
@pytest.mark.parametrize("levels", [0, 1], ids=["a text", "a text in a text"])
@pytest.mark.parametrize("secret", [TOKEN, TOKEN * 7, AWS[:48]], ids=["JWT", "long", "one line"])
def test_base64_in_lines_is_found(
    secret: bytes, levels: int, width: int, end: str, lead: str
) -> None:
    """B7. As MIME and PEM break it, wherever the break falls."""
    encoded = base64.b64encode(lead.encode() + secret).decode()
    lines = end.join(encoded[at : at + width] for at in range(0, len(encoded), width))
    text = dumps({"a": json.dumps(lines)[1:-1] if levels else lines})
    clean, hits = Scrub([secret])(text)
    found: Any = loads(clean)
    assert hits == 1
    assert found["a"].endswith(MARK)
    assert encoded[4:40] not in clean.decode()
    other = dumps({"a": lines.swapcase()})
    assert Scrub([secret])(other) == (other, 0)


any_piece = st.sampled_from(
    [
        "a",
        "%41",
        "%2541",
        "\\u0041",
        "\\\\u002b",
        "&amp;",
        "&#65;",
        "\n",
        "\\n",
        "%",
        "\\",
        "é",
        "x",
    ]
)


@given(st.lists(any_piece, max_size=12), st.lists(any_piece, max_size=12))
def test_what_is_found_in_a_view_is_told_as_a_place_in_the_text(
    before: list[str], after: list[str]
) -> None:
    """B7. Whatever was opened before it: only the secret itself is replaced."""
    hidden = percent("CANARY-5d1f0e77aa")
    parts = "".join(before), "".join(after)
    clean, hits = Scrub([b"CANARY-5d1f0e77aa"])(dumps([f"{parts[0]} {hidden} {parts[1]}"]))
    assert (loads(clean), hits) == ([f"{parts[0]} {MARK} {parts[1]}"], 1)


@pytest.mark.parametrize(
    "other",
    [
        "%e9%20caf%C3%A9",
        "100%",
        "%4",
        "%zz",
        "&#1;",
        "&#300;",
        "&nbsp;",
        "\\u00e9",
        "\\u004",
        "\\x4",
    ],
)
def test_what_is_no_escape_of_a_printable_character_stays(other: str) -> None:
    """B7. The negative rows of the views."""
    text = dumps([other, other * 9])
    assert Scrub([TOKEN, PUNCTUATION])(text) == (text, 0)
    clean, hits = Scrub([TOKEN])(dumps([f"{other} {TOKEN.decode()} {other}"]))
    assert (loads(clean), hits) == ([f"{other} {MARK} {other}"], 1)


def test_escapes_of_other_letters_change_nothing() -> None:
    """B7. A text in a text, as Go and Python write them, without a secret: the same bytes."""
    inner = json.dumps({"a": "<b>", "e": "\u00e9"}).replace("<", "\\u003c")
    text = dumps([inner, every_letter(TOKEN[:-1].decode())])
    clean, hits = Scrub([TOKEN])(text)
    assert (clean, hits) == (text, 0)
    assert clean is text


def test_what_stands_around_an_escaped_secret_stays() -> None:
    """B7. Other escapes, and other ways in which the same secret is written."""
    token = TOKEN.decode()
    value = f"\\u003cb\\u003e {every_letter(token)} \\u003c {token} {every_letter(token)}\\u003e"
    clean, hits = Scrub([TOKEN])(dumps([value]))
    assert hits == 3
    assert loads(clean) == [f"\\u003cb\\u003e {MARK} \\u003c {MARK} {MARK}\\u003e"]
