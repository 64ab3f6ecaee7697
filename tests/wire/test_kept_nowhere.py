"""B7, R107, R117. What was looked for, or where a URL leads, stays in no cache of the process.

``re.compile`` keeps every pattern and ``urlsplit`` every URL that it was given, for as long as the
process lives. Each test has its control: the same text through the cached way is found.
"""

from __future__ import annotations

import gc
import re
from base64 import b64encode
from typing import Any
from urllib import parse

import pytest

from surefoot.credentials import AuthorizationRequired
from surefoot.transports import Endpoint
from surefoot.wire import MARK, Scrub, origin_of, url_parts
from surefoot.wire.strict_json import dumps, loads


def patterns_with(part: str) -> int:
    """How many compiled patterns that are alive hold the text."""
    gc.collect()
    alive: list[Any] = [one for one in gc.get_objects() if type(one) is re.Pattern]
    return sum(part in str(one.pattern) for one in alive)


def made_of(*parts: str) -> str:
    """A secret that stands in no constant of this file."""
    return "".join(parts)


@pytest.mark.parametrize("form", ["plain", "base64", "hex"])
def test_a_secret_that_was_found_is_kept_by_nobody(form: str) -> None:
    """B7. By its scrub as long as that lives; afterwards not by the cache of ``re`` either."""
    part = made_of("q7w8", form, "e9r0")
    secret = made_of("Xk+", part, "/tail")
    written = {
        "plain": secret,
        "base64": b64encode(secret.encode()).decode(),
        "hex": secret.encode().hex(),
    }[form]
    scrub = Scrub([secret.encode()])
    for _ in range(2):
        clean, hits = scrub(dumps([f"you sent {written}"]))
        assert (loads(clean), hits) == ([f"you sent {MARK}"], 1)
    assert scrub.holds(written.encode())
    assert patterns_with(part) > 0
    del scrub
    assert patterns_with(part) == 0
    re.compile(re.escape(part))
    assert patterns_with(part) == 1
    re.purge()


def test_a_url_that_is_looked_at_is_kept_by_nobody() -> None:
    """R117. A consent is a capability, and a Gateway's URL may hold a key."""
    cached: Any = parse.urlsplit
    cached.cache_clear()
    url = made_of("https://issuer.example/", "?key=", "a-capability")
    assert origin_of(url) == ("https", "issuer.example", 443)
    assert AuthorizationRequired("billing", url).authorization_url == url
    assert Endpoint(url).url == url
    assert url_parts(url).query == "key=a-capability"
    assert cached.cache_info().currsize == 0
    assert cached(url) == url_parts(url)
    assert cached.cache_info().currsize == 1


@pytest.mark.parametrize("text", ["https://[half", "http://[::1", "https://a]b/"])
def test_what_is_no_url_raises_as_ever(text: str) -> None:
    """D13. The negative rows."""
    errors: list[Any] = []
    for split in (url_parts, parse.urlsplit):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the two are compared
            split(text)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
