"""R71, R72. What the pages say of our texts, options, errors and grants is what the code says."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest

from surefoot import agentcore, errors, transports
from surefoot.cli._main import COMMANDS, main
from surefoot.credentials import Bearer
from surefoot.evidence import event_schema_text
from surefoot.gateway import Gateway
from surefoot.policy import Call, Cause, Replay, ReplayPolicy, Retry, ToolRule, permit

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
PAGE: Final = (DOCS / "troubleshooting.md").read_text("utf-8")
OPTIONS: Final = (DOCS / "reference" / "options.md").read_text("utf-8")
SOURCE: Final = "\n".join(
    path.read_text("utf-8") for path in sorted((ROOT / "src" / "surefoot").rglob("*.py"))
)
URL: Final = "https://gateway.example.com/mcp"
ARN: Final = "arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/orders-Ab12"


def rows(page: str, heading: str) -> list[list[str]]:
    """The body of the first table under a heading, its cells without the marks of code."""
    part = page.partition(f"{heading}\n")[2].partition("\n## ")[0]
    table = part[part.index("|") :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]


def headings(part: str) -> list[str]:
    """The texts that stand as headings under one part of the page."""
    text = PAGE.partition(f"## {part}\n")[2].partition("\n## ")[0]
    return re.findall(r"^### `([^\n]+)`$", text, re.MULTILINE)


def said(build: Callable[[], object]) -> str:
    """What is said when something is built that cannot mean anything."""
    with pytest.raises((TypeError, ValueError, ImportError)) as caught:
        build()
    return str(caught.value)


wrong: Any = 3
wrong_door: Any = Gateway(URL)


def without_aws() -> object:
    """What is said where the extra is not installed."""
    with patch.dict(sys.modules, {"botocore.credentials": None}):
        return agentcore.runtime(ARN)


WHEN_BUILT: Final[list[Callable[[], object]]] = [
    lambda: Gateway(URL, credentials="a-token"),  # type: ignore[arg-type]
    lambda: Gateway(URL, headers={"Authorization": "x"}),
    lambda: Gateway("ftp://gateway.example.com"),
    lambda: Gateway("https://ana:secret@gateway.example.com/mcp"),
    lambda: Gateway(URL, retry=wrong),
    lambda: ToolRule(repeat_on="throttle"),  # type: ignore[arg-type]
    lambda: Replay(tools={"a": ToolRule(makes_changes=True, repeat_on={"throttle"})}),
    lambda: Bearer("a-token\n"),
    lambda: Bearer("Bearer a-token"),
    lambda: Gateway(URL).protect(object()),
    without_aws,
    lambda: agentcore.runtime("arn:aws:s3:::bucket"),
    lambda: agentcore.gateway(URL),
    lambda: agentcore.gateway("http://gateway.example.com/mcp"),
]

NOT_SENT: Final = ("not-sent", "not-found", "rejected", "server-failure")
NO_CREDENTIAL: Final = ("credentials-failed", "unauthorized", "forbidden")

WHEN_CALLED: Final[list[str]] = [
    str(errors.RateLimitedError(attempts=1, waited=0.0, retry_after=30)),
    str(errors.MayHaveRunError(cause="no-answer", attempts=1)),
    str(errors.MayHaveRunError(cause="fenced", attempts=0)),
    str(errors.MayHaveRunError(cause="unreadable", attempts=1)),
    *(str(errors.NotSentError(cause=cause)) for cause in NOT_SENT),
    *(str(errors.CredentialError(reason)) for reason in NO_CREDENTIAL),
    "a session is entered once; ask the Gateway for another",
    str(errors.SessionLostError()),
    "no AWS credentials were found",
    "a user flow needs a user: use acting_for(), or pass workload_token=",
    "the consent failed or was refused; it has to be asked for again",
    "AgentCore Identity is busy or failing",
]


def test_what_is_said_when_something_is_built_is_on_the_page() -> None:
    for heading, build in zip(headings("When you build something"), WHEN_BUILT, strict=True):
        assert heading in said(build)


def test_what_a_call_raises_is_on_the_page() -> None:
    for heading, text in zip(headings("When you call"), WHEN_CALLED, strict=True):
        assert heading in text
    assert all(f'"{word}"' in SOURCE for word in (*NOT_SENT, *NO_CREDENTIAL, "unreadable"))
    own = WHEN_CALLED.index("a session is entered once; ask the Gateway for another")
    written = WHEN_CALLED[own:]
    assert all(text in SOURCE for text in written if text != str(errors.SessionLostError()))


def test_a_gateway_in_the_place_of_a_door_is_on_the_page() -> None:
    with pytest.raises(TypeError) as caught:
        _, _ = wrong_door
    assert str(caught.value) in headings("From the SDK and from frameworks")


@pytest.mark.parametrize("heading", headings("From `surefoot check`"))
def test_what_check_says_is_on_the_page(heading: str) -> None:
    assert heading in SOURCE


@pytest.mark.parametrize("heading", headings("In the log of `surefoot`"))
def test_what_is_logged_is_on_the_page(heading: str) -> None:
    text, _, why = heading.partition(": ")
    assert text in SOURCE
    assert not why or f'"{why}"' in SOURCE


def test_what_show_says_is_on_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for heading, text in zip(headings("From `surefoot show`"), ("", "{}\n"), strict=True):
        file = tmp_path / "run.jsonl"
        file.write_text(text, "utf-8")
        assert main(["show", str(file)]) == 1
        assert heading in capsys.readouterr().err


@pytest.mark.parametrize("kind", [Retry, Replay, ToolRule])
def test_every_option_of_a_declaration_is_listed_with_its_default(kind: Any) -> None:
    default = kind()
    real = {one.name: repr(getattr(default, one.name)) for one in fields(kind)}
    listed = {
        row[0].strip("`"): row[1].strip("`") for row in rows(OPTIONS, f"## `{kind.__name__}`")
    }
    if kind is Replay:
        assert not default.tools
        real["tools"] = "{}"
    assert all(one.default is not MISSING or one.name == "tools" for one in fields(kind))
    assert listed == real


def test_every_option_of_a_gateway_is_listed_with_its_default() -> None:
    found = inspect.signature(Gateway).parameters
    listed = {row[0].strip("`"): row[1].strip("`") for row in rows(OPTIONS, "## `Gateway`")}
    assert list(listed) == [name for name in found if name != "url"]
    for name, default in listed.items():
        real: Any = found[name].default
        match name:
            case "retry":
                assert real == Retry()
            case "draw":
                assert real is getattr(transports, default)
            case _:
                assert repr(real) == default


def test_every_option_of_agentcore_is_listed_with_its_default() -> None:
    shared = set(inspect.signature(Gateway).parameters)
    for door in (agentcore.runtime, agentcore.gateway):
        found = inspect.signature(door).parameters
        here = {name: found[name].default for name in found if name not in {"agent", "url"}}
        assert shared - here.keys() == {"url", "signer"}
        said = rows(OPTIONS, "## `agentcore.runtime` and `agentcore.gateway`")
        listed = {
            row[0].strip("`"): row[1].strip("`")
            for row in said
            if door is agentcore.runtime or "`runtime` alone" not in row[2]
        }
        other = {
            name
            for name, default in here.items()
            if name not in shared or default != inspect.signature(Gateway).parameters[name].default
        }
        assert listed.keys() == other
        assert here["retry"] == agentcore.DEFAULT_RETRY
        real = {name: "DEFAULT_RETRY" if name == "retry" else repr(here[name]) for name in listed}
        assert listed == real


@pytest.mark.parametrize("kind", [agentcore.AgentCoreIdentity, agentcore.SigV4Signer])
def test_every_option_of_agentcores_classes_is_listed_with_its_default(kind: Any) -> None:
    found = inspect.signature(kind).parameters
    empty = inspect.Parameter.empty
    real = {
        name: "needed" if one.default is empty else repr(one.default) for name, one in found.items()
    }
    said = rows(OPTIONS, f"## `agentcore.{kind.__name__}`")
    assert {row[0].strip("`"): row[1].strip("`") for row in said} == real


def test_every_error_is_listed_with_what_it_is() -> None:
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    listed = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in rows(page, "# Errors")}
    real = {
        name: [base.__name__ for base in getattr(errors, name).__bases__] for name in errors.__all__
    }
    assert listed == real


def test_every_command_and_every_type_of_event_is_listed() -> None:
    commands = rows((DOCS / "reference" / "cli.md").read_text("utf-8"), "# Commands and exit codes")
    assert [re.split(r"[ `]+", row[0])[2] for row in commands] == list(COMMANDS)
    events = rows((DOCS / "reference" / "events.md").read_text("utf-8"), "# Events")
    types = re.findall(r'"\$ref": "#/\$defs/([a-z]+\.[a-z_]+)"', event_schema_text())
    assert [row[0].strip("`") for row in events] == types


def _declared(words: str) -> tuple[ToolRule, bool]:
    """The rule of a row of the table of permissions, and whether its call carries the key."""
    key = "arguments.key" if "with a key" in words else None
    on = frozenset(word for word in ("throttle", "network") if f'"{word}"' in words)
    changes = key is not None or "makes_changes" in words
    rule = ToolRule(makes_changes=changes, idempotency_key=key, repeat_on=on)  # type: ignore[arg-type]
    return rule, key is not None and "does not carry" not in words


COLUMNS: Final[list[tuple[Cause, ReplayPolicy]]] = [
    ("throttle", "assume-refused"),
    ("throttle", "app-authorized"),
    ("reconnect", "assume-refused"),
    ("network", "assume-refused"),
    ("auth", "assume-refused"),
]
PERMISSIONS: Final = rows(
    (DOCS / "concepts" / "permission.md").read_text("utf-8"), "## The table for tool calls"
)


@pytest.mark.parametrize("row", PERMISSIONS, ids=lambda row: row[0])
def test_the_table_of_permissions_is_the_codes(row: list[str]) -> None:
    """D1 to D4, D9."""
    rule, carried = _declared(row[0])
    call = Call(method="tools/call", tool="t", is_tool_call=True, key_carried=carried)
    grants = [
        permit(call, Replay(policy=policy, tools={"t": rule}), cause) for cause, policy in COLUMNS
    ]
    assert row[1:] == ["no" if grant is None else grant.by for grant in grants]


def test_the_tables_were_found() -> None:
    assert len(PERMISSIONS) == 7
    assert headings("In the log of `surefoot`")
