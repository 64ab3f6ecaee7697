"""B7, invariant 11. The audit finds a secret in every form that a program may put it in."""

from __future__ import annotations

import json
import urllib.parse
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.credentials import Secret
from surefoot.testing._audit_forms import SecretForms

SECRET = 'sk-"quoted"\\back/slash+plus é'

FORMS: dict[str, Callable[[str], str | bytes]] = {
    "verbatim": lambda s: s,
    "verbatim bytes": lambda s: s.encode(),
    "JSON": json.dumps,
    "JSON in UTF-8": lambda s: json.dumps(s, ensure_ascii=False),
    "JSON twice": lambda s: json.dumps(json.dumps(s)),
    "JSON three times": lambda s: json.dumps(json.dumps(json.dumps(s, ensure_ascii=False))),
    "every character escaped": lambda s: "".join(f"\\u{ord(c):04X}" for c in s),
    "every second character escaped": lambda s: "".join(
        f"\\u{ord(c):04x}" if n % 2 else json.dumps(c)[1:-1] for n, c in enumerate(s)
    ),
    "percent": lambda s: urllib.parse.quote(s, safe=""),
    "percent in lower case": lambda s: urllib.parse.quote(s, safe="").replace("%C3%A9", "%c3%a9"),
    "percent twice": lambda s: urllib.parse.quote(urllib.parse.quote(s, safe=""), safe=""),
    "every byte percent-encoded": lambda s: "".join(f"%{b:02X}" for b in s.encode()),
    "base64": lambda s: b64encode(s.encode()),
    "base64url": lambda s: urlsafe_b64encode(s.encode()),
    "base64 behind one": lambda s: b64encode(b"x" + s.encode() + b"tail"),
    "base64 behind two": lambda s: b64encode(b"xy" + s.encode() + b"t"),
    "base64url behind a scheme": lambda s: urlsafe_b64encode(b"user:" + s.encode()),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    "utf-16": lambda s: s.encode("utf-16-le"),
    "a Python literal": repr,
    "a literal of bytes": lambda s: repr(s.encode()),
    "a literal of a literal": lambda s: repr(repr(s)),
}

TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x17F), min_size=8, max_size=40)


@pytest.mark.parametrize("form", FORMS)
@given(secret=TEXT | st.just(SECRET), before=st.text(max_size=5), after=st.text(max_size=5))
def test_a_form_is_found_wherever_it_stands(
    form: str, secret: str, before: str, after: str
) -> None:
    """B7. Embedded in any text, for any secret."""
    written = FORMS[form](secret)
    if isinstance(written, str):
        # A letter or a backslash beside an escape would belong to it.
        artefact: str | bytes = before.replace("\\", "") + " " + written + " " + after
    else:
        artefact = written
    assert SecretForms(secret).find(artefact) is not None


@given(secret=TEXT, artefact=st.text(st.characters(min_codepoint=0x400, max_codepoint=0x4FF)))
def test_what_does_not_hold_it_is_not_accused(secret: str, artefact: str) -> None:
    """B7. The negative row: an alphabet that no form of the secret uses."""
    assert SecretForms(secret).find(artefact) is None
    assert SecretForms(secret).find(secret[:-1] + "\u0401") is None


def test_a_form_is_named_and_the_search_shows_nothing() -> None:
    """R108. The one who searches is blind."""
    forms = SecretForms([SECRET, b"another secret"])
    assert forms.find("x another secret x") == "verbatim"
    assert forms.find(b64encode(b"another secret")) == "base64"
    assert forms.find("nothing") is None
    assert repr(forms) == "SecretForms(<hidden>)"


def test_a_sealed_secret_can_be_searched_for() -> None:
    """R107. Without opening it in the test."""
    assert SecretForms(Secret(SECRET)).find(SECRET) == "verbatim"


@pytest.mark.parametrize(
    ("secret", "error", "rule"),
    [
        ("CANARY1", ValueError, "8 bytes or more"),
        ([SECRET, "CANARY"], ValueError, "8 bytes or more"),
        ([], TypeError, "must not be empty"),
        (12345678, TypeError, "must be text or bytes"),
        ([None], TypeError, "must be text or bytes"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_unseen(
    secret: Any, error: type[Exception], rule: str
) -> None:
    """B7, R72. A secret too short occurs by chance."""
    with pytest.raises(error, match=rule) as caught:
        SecretForms(secret)
    assert "CANARY" not in str(caught.value)
