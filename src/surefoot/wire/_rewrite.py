"""The law of this file: what a JSON-RPC error may say is decided here, by code, member by member.

Under ``strict`` an error keeps its integer code, its message if that is a known one, and of its
data only what the protocol gives meaning to and what has a fixed form: version lists, capability
names, a number of seconds, the URLs of a required elicitation (R90, D20). Under ``checked`` message
and data stay, because other servers' messages tell the model what to mend. Under both, what begins
with our own prefix is removed: a server cannot speak as surefoot.
"""

from __future__ import annotations

import re
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, cast

from surefoot.wire._forms import PREFIX
from surefoot.wire._known import KNOWN_ERROR_MESSAGES
from surefoot.wire._origin import url_parts
from surefoot.wire._sentences import Outcome, is_sentence, sentence

__all__ = ["stated_seconds", "strict_error", "without_our_keys"]

_HEADER_MISMATCH: Final = -32020
_MISSING_CAPABILITY: Final = -32021
_UNSUPPORTED_VERSION: Final = -32022
_URL_ELICITATION: Final = -32042

_WORDS: Final[MappingProxyType[int, str]] = MappingProxyType(
    {
        _HEADER_MISMATCH: "The request's headers do not match its body",
        _MISSING_CAPABILITY: "The server requires a capability that the client does not have",
        _UNSUPPORTED_VERSION: "Unsupported protocol version",
        _URL_ELICITATION: "A person has to open a page before the server can do this",
    }
)
"""What stands for an unknown message where the protocol itself gives the code its meaning."""

_MOST_ITEMS: Final = 32
_VERSION: Final = re.compile(r"[0-9A-Za-z.-]{1,32}")
_NAME: Final = re.compile(r"[0-9A-Za-z._-]{1,64}")
_URL: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,2048}")
_CAPABILITIES: Final = frozenset(
    {
        *("elicitation", "experimental", "extensions", "roots", "sampling", "tasks"),
        *("context", "form", "listChanged", "tools", "url"),
        *("cancel", "create", "createMessage", "list", "requests"),
    }
)
_ESCAPABLE: Final = 1e9


def strict_error(value: dict[str, Any], outcome: Outcome, status: int | None) -> dict[str, Any]:
    """Return an error message of which nothing but the allow-listed parts is left (R90).

    Args:
        value: the message.
        outcome: what the error means.
        status: the HTTP status, where that is a failure's.
    """
    error = value["error"]
    code: int = error["code"]
    said: str = error["message"]
    if said not in KNOWN_ERROR_MESSAGES and not is_sentence(said):
        said = _WORDS.get(code) or sentence(outcome, status=status)
    kept: dict[str, Any] = {"code": code, "message": said}
    data = _strict_data(code, error.get("data"))
    if data:
        kept["data"] = data
    return {"jsonrpc": "2.0", "id": value["id"], "error": kept}


def stated_seconds(holder: Any) -> float | None:
    """Read ``retryAfter``, the seconds to wait as AgentCore states them in a body (D17).

    Args:
        holder: the ``data`` of a JSON-RPC error, or a body that is none.
    """
    value = cast("dict[str, Any]", holder).get("retryAfter") if isinstance(holder, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < _ESCAPABLE and isfinite(value) else None


def without_our_keys(value: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the keys under our prefix, where such keys mean something.

    That is in ``_meta`` of a result and of parameters, and in the data of an error.
    """
    kept = dict(value)
    for member in ("result", "params"):
        holder = kept.get(member)
        if isinstance(holder, dict):
            kept[member] = _without(holder, inside="_meta")  # pyright: ignore[reportUnknownArgumentType]
    error = kept.get("error")
    if isinstance(error, dict):
        kept["error"] = _without(error, inside="data")  # pyright: ignore[reportUnknownArgumentType]
    return kept


def _without(holder: dict[str, Any], *, inside: str) -> dict[str, Any]:
    """Drop our keys from one object within another."""
    inner = holder.get(inside)
    if not isinstance(inner, dict):
        return holder
    members = cast("dict[str, Any]", inner)
    return {**holder, inside: {k: v for k, v in members.items() if not k.startswith(PREFIX)}}


def _strict_data(code: int, data: Any) -> dict[str, Any]:
    """Return what of an error's data has a fixed form and a meaning in the protocol."""
    if not isinstance(data, dict):
        return {}
    members = cast("dict[str, Any]", data)
    if code == _UNSUPPORTED_VERSION:
        return _versions(members)
    if code == _MISSING_CAPABILITY:
        return {"requiredCapabilities": _capabilities(members.get("requiredCapabilities"), 3)}
    if code == _URL_ELICITATION:
        return {"elicitations": _elicitations(members.get("elicitations"))}
    seconds = stated_seconds(members)
    return {} if seconds is None else {"retryAfter": members["retryAfter"]}


def _versions(data: dict[str, Any]) -> dict[str, Any]:
    """Keep the protocol versions: connecting rests on them."""
    supported = data.get("supported")
    kept: dict[str, Any] = {"supported": []}
    if isinstance(supported, list):
        kept["supported"] = [
            version
            for version in cast("list[Any]", supported)[:_MOST_ITEMS]
            if isinstance(version, str) and _VERSION.fullmatch(version)
        ]
    requested = data.get("requested")
    known = isinstance(requested, str) and _VERSION.fullmatch(requested)
    kept["requested"] = requested if known else "unknown"
    return kept


def _capabilities(value: Any, depth: int) -> dict[str, Any]:
    """Keep the names of capabilities that the protocol knows, and nothing that is set in them."""
    if not isinstance(value, dict) or not depth:
        return {}
    return {
        name: _capabilities(inner, depth - 1)
        for name, inner in cast("dict[str, Any]", value).items()
        if name in _CAPABILITIES
    }


def _elicitations(value: Any) -> list[dict[str, Any]]:
    """Keep which page a person has to open: as data for the application, never as text."""
    kept: list[dict[str, Any]] = []
    if not isinstance(value, list):
        return kept
    for item in cast("list[Any]", value)[:_MOST_ITEMS]:
        if not isinstance(item, dict):
            continue
        members = cast("dict[str, Any]", item)
        url, name = members.get("url"), members.get("elicitationId")
        if (
            isinstance(url, str)
            and isinstance(name, str)
            and _URL.fullmatch(url)
            and _NAME.fullmatch(name)
            and _is_web_page(url)
        ):
            kept.append(
                {
                    "mode": "url",
                    "elicitationId": name,
                    "url": url,
                    "message": _WORDS[_URL_ELICITATION],
                }
            )
    return kept


def _is_web_page(url: str) -> bool:
    """Tell whether a URL is one that a person may be sent to: https, without user information."""
    try:
        parts = url_parts(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
