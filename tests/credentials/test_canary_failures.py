"""R108, R116, R117, R123, B8. Whoever should have a credential fails, with secrets in its words.

Each source that ships, each thing of an app's own that is asked on the way (a function, ``kind``,
an assertion, an auth, a signer), and the issuer; told by a call, a stream and a notification.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import anyio
import pytest

from support.canaries import CANARY, World, secret, token_for
from support.leaks import traced
from support.oauth_server import TokenRequest, oauth_server
from surefoot import Gateway, Retry
from surefoot.credentials import (
    AuthorizationRequired,
    Bearer,
    ClientCredentials,
    CommandCredentials,
    CredentialRequest,
    EnvironmentCredentials,
    FileCredentials,
    RetryingCredentials,
    SharedCredentials,
    StaticCredentials,
    adopt,
)
from surefoot.errors import AuthorizationRequiredError, CredentialError
from surefoot.sinks import record
from surefoot.testing import (
    FaultyGateway,
    SecretAudit,
    SecretLeakError,
    assert_no_secret,
    tool_call,
)

pytestmark = [pytest.mark.unmeasured, pytest.mark.anyio]

http: Any = importlib.import_module("httpx2")


class VaultError(CredentialError):
    """An app's own kind, which keeps what its vault answered."""

    def __init__(self, said: str) -> None:
        self.answer = said
        self.request = {"authorization": said}
        super().__init__("the vault is closed", service="billing")


class PageError(AuthorizationRequiredError):
    """The same of a consent."""

    def __init__(self, said: str) -> None:
        self.token = said
        super().__init__(service="billing", authorization_url=f"https://a.example/?t={said}")


async def raises(_: object) -> Bearer:
    message = f"the vault said {CANARY}"
    raise RuntimeError(message)


async def raises_a_group(_: object) -> Bearer:
    raise ExceptionGroup(CANARY, [ValueError(CANARY), KeyError(CANARY)])


async def raises_with_a_note(_: object) -> Bearer:
    error = CredentialError("the vault is closed")
    error.add_note(f"it said {CANARY}")
    raise error


async def raises_from_another(_: object) -> Bearer:
    try:
        await raises(_)
    except RuntimeError as error:
        raise CredentialError("the vault is closed") from error
    raise AssertionError


async def raises_its_own_kind(_: object) -> Bearer:
    raise VaultError(CANARY)


async def raises_a_page(_: object) -> Bearer:
    raise PageError(CANARY)


async def raises_of_http(_: object) -> Bearer:
    asked = http.Request("POST", f"https://vault.example/{CANARY}", headers={"x-token": CANARY})
    raise http.ConnectError(CANARY, request=asked)


async def returns_text(_: object) -> Bearer:
    return cast("Bearer", CANARY)


async def malformed(_: object) -> Bearer:
    return Bearer(f"{CANARY}\n")


async def consents(request: CredentialRequest) -> AuthorizationRequired:
    return AuthorizationRequired(request.service, f"https://a.example/?s={CANARY}", CANARY)


async def is_stuck(_: object) -> Bearer:
    held = CANARY
    await anyio.sleep_forever()
    return Bearer(held)


async def signs_badly(request: Any) -> Any:
    request.headers["x-signature"] = f"{CANARY}\n"
    return request


async def signs_nothing(_: object) -> Any:
    return CANARY


class Puts(http.Auth):
    """An auth that puts on what no header can hold."""

    def auth_flow(self, request: Any) -> Iterator[Any]:
        request.headers["authorization"] = f"Bearer {CANARY}\x00"
        yield request


class Raises(http.Auth):
    """An auth that fails."""

    def auth_flow(self, request: Any) -> Iterator[Any]:
        message = f"no key in {CANARY}"
        raise OSError(message)
        yield request


def reads_badly(text: str) -> Bearer:
    message = f"cannot read {text}"
    raise LookupError(message)


def file_of(world: World, text: str) -> FileCredentials:
    path = world.folder / "token"
    path.touch(0o600)
    path.write_text(text, "ascii")
    return FileCredentials(path)


def program(code: str) -> CommandCredentials:
    return CommandCredentials([sys.executable, "-I", "-S", "-c", code])


def asks(world: World, name: str, **proof: Any) -> ClientCredentials:
    """An issuer that is asked by this name, and answers as `refuses` has it."""
    proof = proof or {"client_secret": secret("a client")}
    return ClientCredentials(world.issuer.url, issuer=world.issuer.origin, client_id=name, **proof)


REFUSALS: Final[dict[str, tuple[int, dict[str, str], str]]] = {
    "describes": (400, {}, f'{{"error":"invalid_client","error_description":"{CANARY}"}}'),
    "breaks": (500, {"x-echo": CANARY}, CANARY),
    "redirects": (307, {"location": f"/token?t={CANARY}"}, ""),
    "malforms": (200, {}, f'{{"access_token":"{CANARY}\\n","token_type":"bearer"}}'),
    "doubles": (200, {}, f'{{"access_token":"{CANARY}","access_token":"{CANARY}"}}'),
    "pages": (200, {"content-type": "text/html"}, f"<p>{CANARY}</p>"),
    "names another kind": (200, {}, f'{{"access_token":"{CANARY}","token_type":"{CANARY}"}}'),
}


def refuses(request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
    """The answer for who asks."""
    name = request.client[0] if request.client is not None else request.form.get("client_id", "")
    if name not in REFUSALS:
        return token_for(request)
    status, headers, body = REFUSALS[name]
    return status, headers, body.encode()


RAISING: Final[dict[str, Callable[..., Any]]] = {
    one.__name__: one
    for one in (
        *(raises, raises_a_group, raises_with_a_note, raises_from_another),
        *(raises_its_own_kind, raises_a_page, raises_of_http),
    )
}

FAILURES: Final[dict[str, Callable[[World], dict[str, Any]]]] = {
    **{name: lambda _, one=one: {"credentials": one} for name, one in RAISING.items()},
    "returns text": lambda _: {"credentials": returns_text},
    "malformed": lambda _: {"credentials": malformed},
    "consents": lambda _: {"credentials": consents},
    "stuck": lambda _: {"credentials": is_stuck},
    "shared": lambda _: {"credentials": SharedCredentials(raises)},
    "shared of its own kind": lambda _: {"credentials": SharedCredentials(raises_its_own_kind)},
    "retrying": lambda _: {"credentials": RetryingCredentials(raises)},
    "static of no service": lambda _: {
        "credentials": StaticCredentials({"another": Bearer(CANARY)})
    },
    "environment": lambda _: {
        "credentials": EnvironmentCredentials("TOKEN", environ={"TOKEN": f"{CANARY}\n\n"})
    },
    "kind": lambda _: {
        "credentials": EnvironmentCredentials("TOKEN", kind=reads_badly, environ={"TOKEN": CANARY})
    },
    "two lines in a file": lambda world: {"credentials": file_of(world, f"{CANARY}\n{CANARY}\n")},
    "no program": lambda _: {"credentials": CommandCredentials([f"/no/{CANARY}", CANARY])},
    "two lines of a program": lambda _: {
        "credentials": program(f"print({CANARY!r}); print({CANARY!r})")
    },
    "program that fails": lambda _: {
        "credentials": program(f"import sys; print({CANARY!r}); sys.exit({CANARY!r})")
    },
    **{
        f"issuer {name}": lambda world, name=name: {"credentials": asks(world, name)}
        for name in REFUSALS
    },
    "assertion": lambda world: {"credentials": asks(world, "asserts", assertion=raises)},
    "no key": lambda world: {"credentials": asks(world, "signs", private_key=CANARY)},
    "an auth": lambda world: {"credentials": adopt(Raises(), url=world.url)},
    "an auth that puts": lambda world: {"credentials": adopt(Puts(), url=world.url)},
    "a signer": lambda _: {"signer": raises},
    "a signer that puts": lambda _: {"signer": signs_badly},
    "a signer of nothing": lambda _: {"signer": signs_nothing},
}  # fmt: skip

STREAM: Final = {"accept": "text/event-stream", "mcp-session-id": "s-1"}
NOTE: Final = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()


async def fails(world: World, name: str, audit: SecretAudit, told: dict[str, Any]) -> None:
    """A call, a stream and a notification, none of which can be sent."""
    limit = 0.5 if name == "stuck" else 20
    gateway = Gateway(world.url, name=name, retry=Retry(max_elapsed=limit), **FAILURES[name](world))
    wire = world.family.AsyncHTTPTransport(verify=False)
    async with gateway.protect(world.family.AsyncClient(transport=wire, timeout=20)) as client:
        asked = tool_call("search", {"q": "W-7712"})
        answer = await client.post(world.url, headers=dict(asked.headers), content=asked.body)
        told[name] = answer.json()["result"]["_meta"]["surefoot/outcome"]
        audit.add(f"{name}: answer", answer)
        audit.add(f"{name}: text", answer.text)
        for method, settings in (("GET", {"headers": STREAM}), ("POST", {"content": NOTE})):
            with anyio.move_on_after(0.3 if name == "stuck" else 20):
                try:
                    other = await client.request(method, world.url, **settings)
                    audit.add(f"{name}: {method}", other)
                except Exception as error:  # noqa: BLE001 - it is what is searched
                    audit.add(f"{name}: {method}", error)
    audit.add(f"{name}: gateway", gateway)


@pytest.fixture
def world(tmp_path: Path, family: Any) -> Iterator[World]:
    """An issuer and a gateway."""
    with oauth_server(answer=refuses) as issuer, FaultyGateway() as gateway:
        yield World(tmp_path, issuer, gateway, family)


ONE_FAMILY_EACH: Final = pytest.mark.parametrize(
    ("anyio_backend", "family"), [("asyncio", "httpx2"), ("trio", "httpx")], indirect=True
)


@ONE_FAMILY_EACH
async def test_no_failure_shows_what_it_is_about(world: World) -> None:
    """R108, R116, R117, B8. Nothing was sent, and the model is told a fixed sentence."""
    told: dict[str, Any] = {}
    events = world.folder / "events.jsonl"
    with (
        traced(),
        SecretAudit(CANARY, files=[events], without_loggers=("httpcore", "httpcore2")) as audit,
    ):
        with record(events, content="full"):
            async with anyio.create_task_group() as tasks:
                for name in FAILURES:
                    tasks.start_soon(fails, world, name, audit, told)
        await anyio.wait_all_tasks_blocked()
    assert set(told) == set(FAILURES)
    pages = {"raises_a_page", "consents"}
    for name, facts in told.items():
        kind = "consent-needed" if name in pages else "credentials-failed"
        kind = "not-sent-in-time" if name == "stuck" else kind
        if name == "a signer that puts":  # the HTTP library refuses it, and does not say when
            assert facts["kind"] == "no-answer"
            continue
        assert (name, facts["kind"], facts["effect"]) == (name, kind, "not_sent")
    assert world.gateway.requests("search") == ()
    asked = {one.client[0] for one in world.issuer.tokens if one.client is not None}
    assert asked >= set(REFUSALS), "the issuer was asked, and said it"


@pytest.mark.parametrize("name", RAISING)
async def test_what_is_raised_shows_it_by_itself(name: str) -> None:
    """R109. The control: the same function, asked by somebody who keeps its error."""
    with suppress(AssertionError), pytest.raises(Exception) as raised:  # noqa: PT011
        await RAISING[name](None)
    with pytest.raises(SecretLeakError):
        assert_no_secret(CANARY, raised.value, skip=["objects", "requests", "tasks"])
