"""The law of this file: `surefoot demo` reads its options and gives the word to the demo."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from ._exit_codes import FAILED, OK

__all__ = ["run"]


def run(argv: Sequence[str]) -> int:
    """Show the demo; `FAILED` if surefoot did not keep its word."""
    asked = _parser().parse_args(argv)
    # Only now: the help of a command must not wait for the SDK.
    from surefoot.demo import CLIENTS, Terminal, perform  # noqa: PLC0415

    clients = CLIENTS if asked.only is None else (asked.only,)
    terminal = None if asked.json else Terminal(sys.stdout)
    performance = perform(clients, seed=asked.seed, terminal=terminal)
    if asked.json:
        json.dump(performance.as_json(), sys.stdout, indent=2)
        print(flush=True)
    if performance.kept is False:
        print("surefoot demo: surefoot did not keep its word in this run", file=sys.stderr)
        return FAILED
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="surefoot demo",
        description=(
            "Twelve tool calls against a difficult gateway that is embedded in the program: once "
            "through the plain MCP client, once with one changed line. Takes about ten seconds "
            "(twenty with mcp 1.x, whose plain client hangs), sends nothing to any other machine."
        ),
        epilog="Exit code 1 means that surefoot did not keep its word in this run.",
        allow_abbrev=False,
    )
    parser.add_argument("--only", choices=("plain", "surefoot"), help="only one of the two runs")
    parser.add_argument(
        "--json", action="store_true", help="numbers, calls and evidence as one JSON object"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="for the chance that spreads waits (default 0)",
    )
    return parser
