"""R71, R72, R111, R112, D12, D28. A wrong option is refused when it is declared, by its own name.

The refusal says the rule and the way out, and never repeats a text: what is put in the wrong place
is most often a secret.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any, Final

import pytest

from surefoot import Bearer, Gateway, Headers, Replay, Retry
from surefoot.gateway._sdk import http_library
from surefoot.testing import RecordingSink

URL: Final = "https://gateway.example.com/mcp"
CANARY: Final = "canary-7f3a-do-not-echo"

# Option, value, error, and a word of the rule or of the way out that the message must hold.
WRONG: Final[list[tuple[str, Any, type[Exception], str]]] = [
    ("name", 5, TypeError, "str of 1 to 128 characters"),
    ("name", "", ValueError, "1 to 128 characters"),
    ("name", "x" * 129, ValueError, "1 to 128 characters"),
    ("name", f"{CANARY}\n", ValueError, "control character"),
    ("name", f"{CANARY}\x85", ValueError, "control character"),
    ("credentials", CANARY, TypeError, "Bearer(token)"),
    ("credentials", CANARY.encode(), TypeError, "Bearer(token)"),
    ("credentials", 5, TypeError, "CredentialProvider"),
    ("credentials", {"authorization": CANARY}, TypeError, "Headers"),
    ("credentials", str.upper, TypeError, "async function"),
    ("credentials", Bearer, TypeError, "Bearer"),
    ("signer", CANARY, TypeError, "async function that takes the request"),
    ("service", "", ValueError, "non-empty str"),
    ("service", None, TypeError, "non-empty str"),
    ("service", [CANARY], TypeError, "non-empty str"),
    ("scopes", CANARY, TypeError, 'for example ("tools.read",)'),
    ("scopes", 5, TypeError, "sequence of str"),
    ("scopes", (CANARY, 5), TypeError, "sequence of str"),
    ("scopes", (CANARY, ""), ValueError, "sequence of str"),
    ("mode", CANARY, ValueError, '"machine" or "user"'),
    ("mode", None, TypeError, '"machine" or "user"'),
    ("mode", ["machine"], TypeError, '"machine" or "user"'),
    ("headers", CANARY, TypeError, "mapping of str to str"),
    ("headers", [("x-tenant", CANARY)], TypeError, "mapping of str to str"),
    ("headers", {"x-tenant": 5}, TypeError, "mapping of str to str"),
    ("headers", {5: CANARY}, TypeError, "mapping of str to str"),
    ("headers", {"": CANARY}, ValueError, "RFC 9110"),
    ("headers", {"x tenant": CANARY}, ValueError, "RFC 9110"),
    ("headers", {f"x-{CANARY}\r\nhost": "a"}, ValueError, "RFC 9110"),
    ("headers", {"x-ten\u00e4nt": CANARY}, ValueError, "RFC 9110"),
    ("headers", {"x-tenant": f"{CANARY}\r\nx: y"}, ValueError, "visible ASCII"),
    ("headers", {"x-tenant": f"{CANARY}\u00e9"}, ValueError, "visible ASCII"),
    ("headers", {"x-tenant": f"{CANARY}\x7f"}, ValueError, "visible ASCII"),
    ("headers", {"x-tenant": f" {CANARY}"}, ValueError, "outer blanks"),
    ("headers", {"Authorization": CANARY}, ValueError, "credentials=Headers(...)"),
    ("headers", {"x-api-key": CANARY}, ValueError, "credentials=Headers(...)"),
    ("headers", {"COOKIE": CANARY}, ValueError, "credentials=Headers(...)"),
    ("headers", {"X-Amz-Security-Token": CANARY}, ValueError, "credentials=Headers(...)"),
    ("headers", {"Host": CANARY}, ValueError, "belongs to the protocol"),
    ("headers", {"Content-Length": "5"}, ValueError, "belongs to the protocol"),
    ("headers", {"Mcp-Session-Id": CANARY}, ValueError, "belongs to the protocol"),
    ("retry", True, TypeError, "a Retry, or None to switch it off"),
    ("retry", {"max_attempts": 3}, TypeError, "a Retry, or None"),
    ("retry", CANARY, TypeError, "a Retry, or None"),
    ("replay", "app-authorized", TypeError, "a Replay, or None"),
    ("replay", {"tools": {CANARY: {}}}, TypeError, "a Replay, or None"),
    ("answers", CANARY, ValueError, '"checked" or "strict"'),
    ("answers", None, TypeError, '"checked" or "strict"'),
    ("caller_timeout", CANARY, TypeError, "seconds, or None"),
    ("caller_timeout", True, TypeError, "seconds, or None"),
    ("caller_timeout", 0, ValueError, "above 0 and finite, or None, not 0"),
    ("caller_timeout", -1.5, ValueError, "not -1.5"),
    ("caller_timeout", float("nan"), ValueError, "not nan"),
    ("caller_timeout", float("inf"), ValueError, "not inf"),
    ("caller_timeout", 10**400, ValueError, "above 0 and finite"),
    ("on_authorization", CANARY, TypeError, "callable that takes an AuthorizationRequiredError"),
    ("evidence", 5, TypeError, "function that takes one event"),
    ("clock", CANARY, TypeError, "Clock"),
    ("draw", CANARY, TypeError, "[0, 1)"),
]

WRONG_URLS: Final[list[tuple[Any, type[Exception], str]]] = [
    (None, TypeError, "must be a str such as https://"),
    (b"https://gateway.example.com/mcp", TypeError, "must be a str"),
    ("", ValueError, "http or https"),
    (CANARY, ValueError, "http or https"),
    (f"{CANARY}.example.com/mcp", ValueError, "http or https"),
    (f"ftp://{CANARY}/mcp", ValueError, "http or https"),
    (f"ws://{CANARY}/mcp", ValueError, "http or https"),
    (f"stdio:{CANARY}", ValueError, "http or https"),
    (f"http:///{CANARY}", ValueError, "no host"),
    (f"https://me:{CANARY}@gateway.example.com/mcp", ValueError, "credentials=Basic(...)"),
    (f"https://{CANARY}@gateway.example.com/mcp", ValueError, "credentials=Basic(...)"),
    (f"https://gateway.example.com/mcp#{CANARY}", ValueError, "no fragment"),
    (f"https://gateway.example.com/{CANARY} mcp", ValueError, "blank"),
    (f"https://gateway.example.com/{CANARY}\r\nx: y", ValueError, "control character"),
    (f"https://gateway.example.com:{CANARY}/mcp", ValueError, "is not a URL"),
    (f"https://gateway.example.com:99999/{CANARY}", ValueError, "is not a URL"),
    (f"https://[::1/{CANARY}", ValueError, "is not a URL"),
    (f"https://[v1.x]/{CANARY}", ValueError, "is not a URL"),
    (f"https://256.1.1.1/{CANARY}", ValueError, "is not a URL"),
    (f"https://\u2603.example.com/{CANARY}", ValueError, "is not a URL"),
    (f"https://gateway.example.com/{CANARY}{'x' * 70_000}", ValueError, "is not a URL"),
]

RIGHT_URLS: Final = [
    "http://127.0.0.1:8080/mcp",
    "HTTPS://Gateway.Example.COM/mcp",
    "https://[::1]:8443/mcp?qualifier=DEFAULT",
    "https://b\u00fccher.example/mcp",
    "https://gateway.example.com",
]


def _said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(("option", "value", "kind", "rule"), WRONG)
def test_a_wrong_option_is_named_with_its_rule_and_echoed_nowhere(
    option: str, value: Any, kind: type[Exception], rule: str
) -> None:
    """R71, R72. The whole traceback is searched, not the message alone."""
    with pytest.raises(kind) as caught:
        Gateway(URL, **{option: value})
    assert str(caught.value).startswith(f"{option}: ")
    assert rule in str(caught.value)
    assert CANARY not in _said(caught.value)


@pytest.mark.parametrize(("url", "kind", "rule"), WRONG_URLS)
def test_a_wrong_url_is_refused_when_it_is_declared(
    url: Any, kind: type[Exception], rule: str
) -> None:
    """R72, D28. What the HTTP library could not send to is found out here, and not in a call."""
    with pytest.raises(kind) as caught:
        Gateway(url)
    assert str(caught.value).startswith("url: ")
    assert rule in str(caught.value)
    assert CANARY not in _said(caught.value)


def test_a_value_that_is_echoed_would_be_seen() -> None:
    """R72. The control: the search above finds a text that an error does repeat."""
    with pytest.raises(ValueError, match="canary") as caught:
        int(CANARY)
    assert CANARY in _said(caught.value)


@pytest.mark.parametrize("url", RIGHT_URLS)
def test_a_url_that_can_be_sent_to_is_taken_as_it_stands(url: str) -> None:
    """R111. It is handed to the client unchanged."""
    assert Gateway(url).url == url


def test_every_option_at_its_default_and_at_its_fullest() -> None:
    """R111. The positive rows of the tables above."""

    async def sign(request: Any) -> Any:
        return request

    plain = Gateway(URL)
    full = Gateway(
        URL,
        name="billing",
        credentials=Headers({"x-key": CANARY}),
        signer=sign,
        service="payments",
        scopes=["tools.read", "tools.call"],
        mode="user",
        headers={"x-tenant": "blue", "x-blank": ""},
        retry=Retry(max_attempts=5),
        replay=Replay(policy="app-authorized"),
        answers="strict",
        caller_timeout=30,
        on_authorization=print,
        evidence=RecordingSink(),
    )
    bare = Gateway(URL, credentials=None, headers=None, retry=None, replay=None, evidence=print)
    assert (plain.name, full.name, bare.name) == (None, "billing", None)
    assert repr(full) == "Gateway('billing')"
    assert repr(plain) == "Gateway('https://gateway.example.com')"
    assert CANARY not in repr(vars(full))


def test_an_option_that_does_not_exist_is_pythons_own_error() -> None:
    """R72. Everything after the URL is given by its name."""
    with pytest.raises(TypeError, match="max_attempts"):
        Gateway(URL, max_attempts=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Gateway(URL, "billing")  # type: ignore[misc]


def test_what_is_declared_is_not_changed_by_changing_what_was_passed() -> None:
    """R71. A declaration is what it was when it was checked."""
    headers, scopes = {"x-tenant": "blue"}, ["tools.read"]
    gateway = Gateway(URL, headers=headers, scopes=scopes)
    headers["x-tenant"] = "bad\r\nvalue"
    scopes.append("tools.admin")
    assert gateway._options.headers == {"x-tenant": "blue"}
    assert gateway._options.scopes == ("tools.read",)


def test_a_missing_http_library_is_not_told_as_a_wrong_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """R72. What is named is what has to be mended."""
    needed = http_library().__name__
    monkeypatch.setitem(sys.modules, needed, None)
    with pytest.raises(ImportError, match=needed):
        Gateway(URL)
