"""B12. Memory stays within three times the cap, whatever comes; each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.memory import PEAK, needs_peak

pytestmark = pytest.mark.unmeasured

CAP = 16 * 1024 * 1024

SCRIPT = (
    PEAK
    + """
import sys
from surefoot.errors import UnreadableAnswerError
from surefoot.wire import JsonLimits, RawAnswer, SseDecoder, safe_answer
from surefoot.wire.strict_json import loads

what = sys.argv[1]
if what == "containers":
    data = b"[" + b"[]," * 2_666_666 + b"[]]"
elif what == "objects":
    data = b"[" + b"{}," * 2_666_666 + b"{}]"
elif what == "strings":
    data = b'["' + b"[" * 8_000_000 + b'"]'
elif what == "quotes":
    data = b"[" + b'"",' * 2_600_000 + b"[" * 600_000
else:
    data = b""
before = peak()
if what == "stream":
    decoder = SseDecoder()
    try:
        for _ in range(2_000):
            for _ in decoder.feed(b"data: " + b"x" * 65_000):
                pass
    except UnreadableAnswerError as error:
        print(error.rule)
elif what == "comments":
    decoder = SseDecoder()
    try:
        for _ in range(4_000):
            for _ in decoder.feed(b": " + b"x" * 500 + b"\\n" + b":\\n" * 20_000):
                pass
    except UnreadableAnswerError as error:
        print(error.rule)
elif what == "answer":
    data = b"[" + b"[]," * 2_666_666 + b"[]]"
    before = peak()
    answer = RawAnswer(200, ((b"content-type", b"application/json"),), data)
    print(safe_answer(answer, request_id=1).rule)
else:
    try:
        loads(data)
        print("read")
    except UnreadableAnswerError as error:
        print(error.rule)
print(peak() - before)
"""
)


@needs_peak
@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("containers", "too-many-containers"),
        ("objects", "too-many-containers"),
        ("strings", "read"),
        ("quotes", "too-many-containers"),
        ("answer", "too-many-containers"),
        ("stream", "event-bytes"),
        ("comments", "comment-bytes"),
    ],
)
def test_peak_memory_stays_below_three_times_the_cap(what: str, says: str) -> None:
    """B12, R98."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, what], capture_output=True, text=True, timeout=50, check=True
    )
    said, grown = done.stdout.split()
    assert said == says
    assert int(grown) < 3 * CAP


@needs_peak
def test_without_the_count_empty_containers_would_cost_far_more() -> None:
    """B12. The positive control: the bound is what keeps the memory."""
    code = PEAK + (
        "import jiter\n"
        "data = b'[' + b'[],' * 2_666_666 + b'[]]'\n"
        "before = peak()\n"
        "value = jiter.from_json(data)\n"
        "print(peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert int(done.stdout) > 3 * CAP
