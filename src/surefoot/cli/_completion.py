"""The law of this file: a shell is told what the help says, so that the two cannot disagree.

The script that is printed is text: it starts nothing of ours while somebody types.
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Final

from ._exit_codes import OK

__all__ = ["run"]

_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_CHOICES: Final = re.compile(r"\{([a-z0-9,-]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """What may follow one command."""

    command: str
    does: str
    options: tuple[str, ...]
    choices: tuple[str, ...]

    @property
    def all(self) -> str:
        return " ".join((*self.options, *self.choices))


def run(argv: Sequence[str]) -> int:
    """Print the completion script of one shell."""
    asked = _parser().parse_args(argv)
    print(_SHELLS[asked.shell](_known()), end="")
    return OK


def _known() -> list[_Words]:
    """Every command with its options, as its own help names them."""
    from ._main import COMMANDS  # noqa: PLC0415 - it names this file

    found: list[_Words] = []
    for name, command in COMMANDS.items():
        text = io.StringIO()
        try:
            with redirect_stdout(text):
                import_module(f"surefoot.cli.{command.module}").run(["--help"])
        except SystemExit:
            pass
        usage = text.getvalue().partition("\n\n")[0]
        found.append(
            _Words(
                command=name,
                does=command.does,
                options=tuple(dict.fromkeys((*_OPTION.findall(usage), "--help"))),
                choices=tuple(
                    word for group in _CHOICES.findall(usage) for word in group.split(",")
                ),
            )
        )
    return found


def _bash(known: list[_Words]) -> str:
    names = " ".join(words.command for words in known)
    cases = "".join(f"      {one.command}) words='{one.all}' ;;\n" for one in known)
    return f"""\
# surefoot completion for bash; in ~/.bashrc: eval "$(surefoot completion bash)"
_surefoot() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=''
  if (( COMP_CWORD == 1 )); then
    words='{names} --help --version'
  else
    case ${{COMP_WORDS[1]}} in
{cases}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _surefoot surefoot
"""


def _zsh(known: list[_Words]) -> str:
    named = " ".join(f"'{one.command}:{_bare(one.does)}'" for one in known)
    cases = "".join(f"    {one.command}) compadd -- {one.all} ;;\n" for one in known)
    return f"""\
#compdef surefoot
# surefoot completion for zsh; in ~/.zshrc, after compinit: eval "$(surefoot completion zsh)"
_surefoot() {{
  if (( CURRENT == 2 )); then
    local -a commands=({named})
    _describe command commands
    return
  fi
  case $words[2] in
{cases}  esac
  _files
}}
if [[ $funcstack[1] == _surefoot ]]; then _surefoot "$@"; else compdef _surefoot surefoot; fi
"""


def _fish(known: list[_Words]) -> str:
    lines = ["# surefoot completion for fish; save as ~/.config/fish/completions/surefoot.fish"]
    for one in known:
        lines.append(
            f"complete -c surefoot -n __fish_use_subcommand -f -a {one.command} "
            f"-d '{_bare(one.does)}'"
        )
        seen = f"-n '__fish_seen_subcommand_from {one.command}'"
        lines += [f"complete -c surefoot {seen} -l {option[2:]}" for option in one.options]
        lines += [f"complete -c surefoot {seen} -f -a {choice}" for choice in one.choices]
    return "\n".join([*lines, ""])


def _bare(text: str) -> str:
    """A text that may stand between single quotes, and after a colon, in every shell."""
    return re.sub(r"[':\\]", "", text)


_SHELLS: Final[Mapping[str, Callable[[list[_Words]], str]]] = MappingProxyType(
    {"bash": _bash, "fish": _fish, "zsh": _zsh}
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="surefoot completion",
        description="Prints the script by which a shell completes commands and options.",
        epilog='In ~/.bashrc: eval "$(surefoot completion bash)"; each script says where it goes.',
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=tuple(_SHELLS), help="the shell")
    return parser
