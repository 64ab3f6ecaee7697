"""The law of this file: `surefoot check` reads its options, and nothing of them is ever echoed.

A token comes from the environment or from a file, never from the command line, which every user of
the machine can read. What was put in a wrong place may be one all the same, the name of a file not
less than its text, so a mistake names the option and repeats no value. A report shows the URL's
origin, and a tool's name where the server lists it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import stat
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from ._exit_codes import FAILED, FLAWED, OK, USAGE

if TYPE_CHECKING:
    from surefoot.credentials import CredentialProvider

    from ._check_look import Look

__all__ = ["run"]

_QUOTED: Final = re.compile(r"(['\"]).*\1", re.DOTALL)
_LONGEST: Final = 600.0
_NAMED: Final = "a token is named by --token-env or --token-file"
_MOST_ARGUMENTS: Final = 4 * 1024 * 1024
_A_NAME: Final = "the option takes a file's name, and what was given is not shown"


class _MistakeError(Exception):
    """The command line means nothing, or cannot be followed; the message quotes none of it."""

    def __init__(self, words: str, *, code: int = USAGE) -> None:
        self.code = code
        super().__init__(words)


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints quote nothing."""

    def error(self, message: str) -> NoReturn:
        raise _MistakeError(_QUOTED.sub("(not shown)", message))


def run(argv: Sequence[str]) -> int:
    """Look at a gateway; `FLAWED` if something is wrong with its answers."""
    try:
        asked, rest = _parser().parse_known_args(argv)
        _refuse(asked.url, rest)
        # Only now: the help of a command must not wait for the SDK.
        from ._check_look import Plan, look  # noqa: PLC0415

        plan = Plan(
            url=asked.url,
            credentials=_credentials(asked),
            credential_header=asked.api_key or "authorization",
            timeout=asked.timeout,
            call=asked.call,
            arguments=_arguments(asked),
        )
        if plan.call is not None:
            print("surefoot check: --call runs that tool at the gateway, once", file=sys.stderr)
        import anyio  # noqa: PLC0415 - as above

        with _silence():
            seen = anyio.run(look, plan)
    except _MistakeError as mistake:
        return _mistaken(str(mistake), mistake.code)
    except (TypeError, ValueError) as error:  # of the Gateway's options; they echo nothing
        return _mistaken(str(error), USAGE)
    code = _code(seen)
    from ._check_words import as_json, as_text  # noqa: PLC0415 - as above

    if asked.json:
        json.dump(as_json(seen, exit_code=code), sys.stdout, indent=2)
        print(flush=True)
    else:
        print(as_text(seen), flush=True)
    return code


def _refuse(url: str, rest: Sequence[str]) -> None:
    """Say what may be given, where something else was."""
    if any("token" in word.partition("=")[0] for word in rest):
        raise _MistakeError(_NAMED)
    if rest:
        raise _MistakeError("it takes one URL, and the options that --help names")
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise _MistakeError(f"url: must hold no user name or password; {_NAMED}")


def _code(seen: Look) -> int:
    if seen.failed is not None or (seen.called is not None and not seen.called.answered):
        return FAILED
    return FLAWED if seen.problems else OK


def _credentials(asked: argparse.Namespace) -> CredentialProvider | None:
    from surefoot.credentials import (  # noqa: PLC0415 - as above
        ApiKey,
        Bearer,
        EnvironmentCredentials,
        FileCredentials,
    )

    kind = Bearer if asked.api_key is None else partial(ApiKey, header=asked.api_key)
    if asked.token_file is not None:
        _file("--token-file", asked.token_file, most=0)  # what is wrong with it, said at once
        return FileCredentials(asked.token_file, kind=kind)
    if asked.token_env is None:
        if asked.api_key is not None:
            raise _MistakeError(
                "--api-key names a header; the key is named by --token-env or -file"
            )
        return None
    provider = EnvironmentCredentials(asked.token_env, kind=kind)
    if not os.environ.get(asked.token_env):
        raise _MistakeError("the variable that --token-env names is not set, or is empty")
    return provider


def _arguments(asked: argparse.Namespace) -> Mapping[str, Any]:
    from surefoot.errors import UnreadableAnswerError  # noqa: PLC0415 - as above
    from surefoot.wire import strict_json  # noqa: PLC0415 - as above

    if asked.args is None:
        return {}
    if asked.call is None:
        raise _MistakeError("--args are the arguments of --call")
    text: str = asked.args
    data = text.encode("utf-8", "surrogateescape")
    if text.startswith("@"):
        data = _file("--args", text[1:], most=_MOST_ARGUMENTS)
    if len(data) > _MOST_ARGUMENTS:
        raise _MistakeError(f"--args: must be at most {_MOST_ARGUMENTS >> 20} MiB")
    try:
        value = strict_json.loads(data)
    except UnreadableAnswerError as error:
        raise _MistakeError(f"--args: is not JSON ({error.rule})") from None
    if not isinstance(value, dict):
        raise _MistakeError('--args: must be a JSON object, such as {"q": "W-7712"}')
    return cast("dict[str, Any]", value)


def _file(option: str, path: str, *, most: int) -> bytes:
    """The beginning of a file that an option names, one byte longer than it may be at the most.

    A name that is none may be a token, and is therefore not repeated; what the system says of it is
    a fixed sentence, or is left out.
    """
    try:
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # no pipe is waited for
        try:
            if stat.S_ISREG(os.fstat(opened).st_mode):
                with open(opened, "rb", closefd=False) as file:
                    return file.read(most + 1)
        finally:
            os.close(opened)
        why = "it is no regular file"
    except OSError as error:
        why = os.strerror(error.errno) if error.errno is not None else type(error).__name__
    except ValueError:  # a NUL in the name
        why = "that is no name of a file"
    raise _MistakeError(f"the file of {option} cannot be read ({why}); {_A_NAME}", code=FAILED)


@contextmanager
def _silence() -> Generator[None]:
    """Nothing is logged while it lasts: what is to be said is said here, once."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _mistaken(words: str, code: int) -> int:
    print(f"surefoot check: {words}. See surefoot check --help.", file=sys.stderr)
    return code


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not isfinite(value) or not 0 < value <= _LONGEST:
        raise argparse.ArgumentTypeError(f"must be seconds, above 0 and at most {_LONGEST:g}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="surefoot check",
        description=(
            "Connects to an MCP gateway and says what it is: its protocol, what credential it asks "
            "for, what it says about limits, its tools with their hints; what surefoot would do "
            "with it; and what is wrong with its answers, read strictly."
        ),
        epilog=(
            "Exit codes: 0 nothing is wrong, 1 it could not be entered, listed or called, 2 wrong "
            "usage, 4 it answered, and something is wrong with its answers. Without --call nothing "
            "is run at the gateway."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("url", metavar="URL", help="the MCP endpoint, http or https")
    token = parser.add_mutually_exclusive_group()
    token.add_argument("--token-env", metavar="NAME", help="the variable that holds the token")
    token.add_argument("--token-file", metavar="FILE", help="the file that holds the token")
    parser.add_argument(
        "--api-key", metavar="HEADER", help="send the token in this header, not as a bearer token"
    )
    parser.add_argument("--call", metavar="TOOL", help="also run this tool, once; it EXECUTES it")
    parser.add_argument(
        "--args", metavar="JSON", help="the arguments of --call: a JSON object, or @FILE"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long all of it may take (default 30)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead")
    return parser
