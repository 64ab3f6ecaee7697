"""B5. The page of sentences says what the code says: every outcome, every sentence, every field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surefoot.wire import MAY_HAVE_RUN, OUTCOMES, Outcome, outcome_meta, sentence

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sentences.md").read_text("utf-8")


def section(outcome: Outcome) -> str:
    return PAGE.partition(f"### `{outcome}`\n")[2].partition("\n### ")[0]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_page_has_every_sentence_word_for_word(outcome: Outcome) -> None:
    """B5."""
    assert f"> {sentence(outcome)}\n" in section(outcome)
    ran = re.findall(r"^Did it run: (.*)\.$", section(outcome), re.MULTILINE)
    if outcome in MAY_HAVE_RUN:
        assert ran == ["unknown"]
    else:
        said = "no" if "was not sent" in sentence(outcome) else "refused first"
        assert ran == [said]


def test_the_page_has_no_outcome_that_does_not_exist() -> None:
    """B5. Neither one too many nor one too few, and in the order of the code."""
    assert re.findall(r"^### `([a-z-]+)`$", PAGE, re.MULTILINE) == list(OUTCOMES)


def test_the_page_shows_a_stated_wait() -> None:
    """B5."""
    assert sentence("rate-limited", status=429, retry_after=30, attempts=3) in PAGE


def test_the_page_has_every_field_of_the_facts() -> None:
    """B5."""
    facts = outcome_meta(
        "unreadable",
        may_have_run=True,
        effect="unknown",
        status=200,
        retry_after=1.0,
        attempts=1,
        waited=0.0,
        error_type="AnError",
        rule="x",
        call_id="c",
        earlier="b",
    )
    table = PAGE.partition("| field |")[2]
    assert re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE) == list(facts)


@pytest.mark.parametrize("outcome", ["no-answer", "too-large"])
def test_the_page_says_how_a_read_ends(outcome: Outcome) -> None:
    """B5."""
    text = sentence(outcome, what="read")
    assert "> " + text[text.index("It only reads") :] in PAGE
