"""What it costs to look for a bearer token in every answer, against reading the answer.

    pip install orjson   (for the texts of wire_json)
    python benchmarks/wire_scrub.py [--rounds 25]

Targets: building at most 20 microseconds, one search at most 2 at 300 bytes, and above that at most
8 % of reading. The search goes over each answer four times (as it is, and base64 at three
alignments), and stops at nothing, because there is nothing to find. A base64 picture is read so
fast that no search is 8 % of it.
"""

from __future__ import annotations

import argparse
import base64
import random

from figures import figure
from wire_json import texts
from wire_rounds import compare

from surefoot.wire import Scrub
from surefoot.wire.strict_json import canonical


def main() -> None:
    """Print one table for each size, and one for building."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    draw = random.Random(2)  # noqa: S311  # seeded tokens
    head = b"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9."
    tokens = {
        "opaque, 40 bytes": base64.urlsafe_b64encode(draw.randbytes(30)),
        "JWT, 700 bytes": head + base64.urlsafe_b64encode(draw.randbytes(498)),
        "AWS session, 1,000 bytes": base64.b64encode(draw.randbytes(750)),
    }
    compare(
        "building a scrub",
        {name: lambda token=token: Scrub([token]) for name, token in tokens.items()},
        rounds=rounds,
    )
    for name, data in texts().items():
        text = canonical(data)[1]
        rows = {"reading": lambda data=data: canonical(data)}
        scrubs = {what: Scrub([token]) for what, token in tokens.items()}
        for what, scrub in scrubs.items():
            rows[f"search: {what}"] = lambda scrub=scrub, text=text: scrub(text)
        turns = rounds if len(data) < 1_000_000 else 9
        found = compare(f"{name}: {len(text):,} bytes", rows, rounds=turns)
        what = "search: JWT, 700 bytes"
        title = f"a search for a JWT in {len(text):,} bytes"
        if len(text) < 1_000:
            figure(title, found.least[what], "us", at_most=2)
        elif name != "base64":  # so fast to read that no search is 8 % of it
            figure(title, found[what], "x", against="reading it", at_most=0.08)


if __name__ == "__main__":
    main()
