"""The law of this file: it finds the command and runs it; nobody's mistake ends in a traceback.

A command is a module of this room with `run(argv) -> int`, and one row of the table. It is imported
when it is called, so that `surefoot --help` is quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

from ._exit_codes import BROKEN_PIPE, FAILED, INTERRUPTED, OK, USAGE

__all__ = ["COMMANDS", "Command", "main"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of the program."""

    module: str
    """The file in this room that has its `run`."""

    does: str
    """What it does, in one line."""


COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "demo": Command(
            module="_demo",
            does="the same calls to a difficult gateway, without and with surefoot",
        ),
        "check": Command(
            module="_check",
            does="what a gateway is like, and what is wrong with its answers",
        ),
        "show": Command(
            module="_show",
            does="the timeline of a recorded run: attempts, waits, permissions",
        ),
        "completion": Command(
            module="_completion",
            does="the completion script for bash, zsh or fish",
        ),
    }
)
"""Every command, in the order in which `--help` lists them."""

_ABOUT: Final = """\
The layer under any Python MCP client: it waits when told, repeats only what may
be repeated, vends fresh credentials, and keeps the evidence."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program, and give its exit code (`_exit_codes.py`).

    Args:
        argv: the arguments, without the program's name; those of the process by default.
    """
    try:
        return _dispatch(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        print("surefoot: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads: what is still buffered must not raise again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"surefoot: {where}{error.strerror or type(error).__name__}", file=sys.stderr)
        return FAILED


def _dispatch(argv: Sequence[str]) -> int:
    parser = _parser()
    try:
        known, rest = parser.parse_known_args(argv[:1])
    except SystemExit as done:  # argparse has said why, or what was asked for
        return USAGE if done.code else OK
    name = known.command or (rest[0] if rest else None)
    if name is None:
        parser.print_help()
        return USAGE
    command = COMMANDS.get(name)
    if command is None:
        what = "option" if name.startswith("-") else "command"
        print(
            f"surefoot: no such {what}: {name!r}. Commands: {', '.join(COMMANDS)}. "
            "See surefoot --help.",
            file=sys.stderr,
        )
        return USAGE
    try:
        return int(import_module(f"surefoot.cli.{command.module}").run(argv[1:]))
    except SystemExit as done:  # a command's own parser
        return USAGE if done.code else OK


def _parser() -> argparse.ArgumentParser:
    longest = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name.ljust(longest)}  {one.does}" for name, one in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="surefoot",
        usage="surefoot COMMAND [OPTIONS]",
        description=_ABOUT,
        epilog=(
            f"commands:\n{listed}\n\n"
            "example:\n  surefoot demo --only surefoot\n\n"
            "surefoot COMMAND --help says what a command takes. Exit codes: 0 done, 1 failed,\n"
            "2 wrong usage, 3 shown but incomplete, 4 something is wrong, 130 interrupted."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"surefoot {version('surefoot')}")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    return parser
