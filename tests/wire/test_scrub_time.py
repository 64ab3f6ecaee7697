"""The law of this file: no answer costs more than its length (B7, B12); a server may send anything.

Time is compared between two lengths of the same answer: eight times as long may cost eight times as
much and some noise, and not sixty-four times.
"""

from __future__ import annotations

import json
import re
import tracemalloc
from base64 import b64encode
from collections.abc import Callable
from itertools import islice, product
from string import ascii_letters
from time import process_time
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.wire import MARK, Scrub
from surefoot.wire.strict_json import dumps, loads

pytestmark = pytest.mark.unmeasured

SECRETS: Final[dict[str, bytes]] = {
    "plain": b"CANARY-5d1f0e77aa",
    "a sign in front": b"+abcdefgh/ijkl",
    "slashes": b"//////////////a1b2",
    "backslashes inside": b"a\\\\b\\\\c\\\\ddd",
    "backslashes in front": b"\\\\abcdefgh",
    "backslashes at the end": b"abcdefgh\\\\",
    "a quote behind a backslash": b'ab\\"cdefgh',
    "backslashes alone": b"\\" * 9,
    "percent signs": b"%%%%%%%%%%%2525",
}
FILLS: Final = (
    "\\",
    "%",
    "%25",
    "\\u00",
    "+",
    "/",
    '\\"',
    "\\u005",
    "=",
    "%2",
    "\\n",
    "a",
    " ",
    "A\n",
)
SHORT: Final = 3_000
TIMES: Final = 8
MOST: Final = 24
secrets = pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)


def cost(work: Callable[[], object]) -> float:
    """Seconds of this process, the least of three."""
    least = float("inf")
    for _ in range(3):
        began = process_time()
        work()
        least = min(least, process_time() - began)
    return least


def growth(work: Callable[[int], Callable[[], object]]) -> float:
    """How many times as much a text costs that is eight times as long.

    A busy machine can spoil a measurement, and does not spoil four: what is square costs sixty-four
    times as much in each of them.
    """
    least = float("inf")
    for _ in range(4):
        short, long = cost(work(SHORT)), cost(work(SHORT * TIMES))
        least = min(least, long / max(short, 0.001))
        if least < MOST:
            break
    return least


def answer(secret: bytes, fill: str, length: int) -> bytes:
    """An answer that echoes, so that all of it is matched, and holds one escape."""
    return dumps({"a": secret.decode(), "e": "\x01", "t": (fill * length)[:length]})


@secrets
@pytest.mark.parametrize("fill", FILLS)
def test_a_long_run_of_anything_costs_no_more_than_its_length(secret: bytes, fill: str) -> None:
    """B7, B12."""
    scrub = Scrub([secret])

    def searched(length: int) -> Callable[[], object]:
        text = answer(secret, fill, length)
        assert scrub(text)[1] >= 1
        return lambda: scrub(text)

    assert growth(searched) < MOST


@secrets
@pytest.mark.parametrize("fill", ["\\", "%", "+", "%25"])
def test_nor_does_a_long_header_value(secret: bytes, fill: str) -> None:
    """B7, B12."""
    scrub = Scrub([secret])

    def held(length: int) -> Callable[[], object]:
        value = b"\\u0041" + secret + (fill * length)[:length].encode()
        assert scrub.holds(value)
        return lambda: scrub.holds(value)

    assert growth(held) < MOST


PIECES: Final = (
    "\\",
    "\\\\",
    "%",
    "25",
    "u00",
    "2",
    "b",
    "+",
    "-",
    "/",
    "=",
    "ANARY",
    "5d1f",
    "\n",
)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(SECRETS)),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
)
def test_nor_does_any_run_of_pieces(which: str, piece: str) -> None:
    """B7, B12."""
    secret = SECRETS[which]
    scrub = Scrub([secret])

    def searched(length: int) -> Callable[[], object]:
        text = answer(secret, piece, length)
        return lambda: scrub(text)

    assert growth(searched) < MOST


def test_the_control_of_these_a_pattern_that_goes_back_is_seen() -> None:
    """B12. What a search cost that looked at a run of backslashes once from each of them."""
    backward = re.compile(r"\\+u00([2-7][0-9A-Fa-f])")
    assert growth(lambda length: lambda: backward.search("\\" * length)) > MOST


@pytest.mark.parametrize("taken", [0, 200], ids=["free", "some taken"])
def test_keys_that_all_become_the_mark_cost_no_more_than_their_number(taken: int) -> None:
    """B7, B12. They stay as many as they were, whatever else has such a name already."""
    secret = SECRETS["plain"]
    inside = b64encode(bytes(2) + secret)[3 : 8 * (2 + len(secret)) // 6].decode()
    scrub = Scrub([secret])
    already = {f"{MARK} ({number})": 0 for number in range(2, taken + 2)}

    def renamed(length: int) -> Callable[[], object]:
        # (Two characters on either side are taken in, because they hold bits of the secret.)
        pairs = ["".join(pair) for pair in islice(product(ascii_letters, repeat=4), length // 10)]
        members = already | {f"{pair[:2]}{inside}{pair[2:]}": 1 for pair in pairs}
        text = dumps(members)
        clean, hits = scrub(text)
        assert hits == len(pairs)
        found: Any = loads(clean)
        assert len(found) == len(members)
        assert MARK in found
        return lambda: scrub(text)

    assert growth(renamed) < MOST


def test_a_key_that_has_the_name_of_a_cleaned_one_is_not_lost() -> None:
    """B7, R95. Wherever it stands."""
    name = SECRETS["plain"].decode()
    text = dumps({name: 1, f"%{name}": 2, f"{name}%": 3, "x": 4, MARK: 5, f"%{MARK}": 6})
    clean, hits = Scrub([SECRETS["plain"]])(text)
    found: Any = loads(clean)
    assert hits == 3
    assert sorted(found.values()) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("fill", ["abcdefg ", "\\u0041", "%41", "\\n", "&#65;"])
def test_an_echo_in_a_long_text_takes_no_more_memory_than_some_copies_of_it(fill: str) -> None:
    """B12. Where the escapes are is counted, and not kept."""
    text = dumps([f"\\u0041 CANARY-5d1f0e77aa {(fill * 250_000)[:1_000_000]}"])
    scrub = Scrub([SECRETS["plain"]])
    tracemalloc.start()
    try:
        _, hits = scrub(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert hits == 1
    assert peak < 12 * len(text)


@secrets
@pytest.mark.parametrize("levels", range(4))
def test_a_secret_with_backslashes_is_found_at_any_depth(secret: bytes, levels: int) -> None:
    """B7. However many backslashes an escaping added to its own."""
    spelled = secret.decode()
    for _ in range(levels):
        spelled = json.dumps(spelled)[1:-1]
    clean, hits = Scrub([secret])(dumps([f"<{spelled}>"]))
    assert (loads(clean), hits) == ([f"<{MARK}>"], 1)


@pytest.mark.parametrize("other", ["\\abcdefgh", "\\\\abcdefg", "abcdefgh", "\\ \\abcdefgh"])
def test_and_one_backslash_too_few_is_another_text(other: str) -> None:
    """B7. The negative rows of the one above."""
    text = dumps([other])
    assert Scrub([SECRETS["backslashes in front"]])(text) == (text, 0)
