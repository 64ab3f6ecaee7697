"""The page that says where things are names files that are there, and enough of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from import_law import MAY_IMPORT

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "dev" / "architecture.md").read_text("utf-8")
ROWS = re.findall(r"^\| (?!you look for|---)(.+?) \| (.+) \|$", PAGE, re.MULTILINE)


def test_it_has_at_least_two_dozen_topics() -> None:
    assert len(ROWS) >= 24
    assert len({topic for topic, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("topic", "places"), ROWS)
def test_every_place_is_there(topic: str, places: str) -> None:
    paths = re.findall(r"`([^`]+)`", places)
    assert paths, topic
    for path in paths:
        assert (ROOT / path).is_file(), f"{topic}: {path}"


def test_every_room_that_is_built_is_in_the_picture() -> None:
    picture = PAGE.partition("```text")[2].partition("```")[0]
    built = {path.name for path in (ROOT / "src" / "surefoot").iterdir() if path.is_dir()}
    rooms = built & set(MAY_IMPORT)
    assert "gateway" in rooms
    assert {room for room in rooms if room not in picture} == set()
