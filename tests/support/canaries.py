"""The law of this file: each source of a credential, and each end of its call, stands here once.

Every secret begins with the same canary and goes on with the name of its source, so that one search
finds all of them, and a server tells whose came.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import jwt
import mcp.client.auth.oauth2 as sdk
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from support.agentcore import keys
from support.oauth_server import OAuthServer, TokenRequest
from surefoot import Gateway, agentcore
from surefoot.credentials import (
    AdoptedCredentials,
    ApiKey,
    Basic,
    Bearer,
    ClientCredentials,
    CommandCredentials,
    CredentialRequest,
    EnvironmentCredentials,
    FileCredentials,
    Headers,
    Issued,
    RetryingCredentials,
    SharedCredentials,
    StaticCredentials,
    adopt,
)
from surefoot.testing import (
    CutJson,
    Exchange,
    FaultyGateway,
    HeldStream,
    Reset,
    Slow,
    SseCut,
    Step,
    Trickle,
)

__all__ = [
    "CANARY",
    "ENDS",
    "SOURCES",
    "Storage",
    "World",
    "carried",
    "gateway_with",
    "secret",
    "token_for",
    "vending",
]

CANARY: Final = "CANARY-4e1b9/+d"
"""With characters that JSON, a URL and base64 each write in another way."""

_BACK: Final[Any] = ["http://localhost:1/back"]


@dataclass
class World:
    """What the sources need around them."""

    folder: Path
    issuer: OAuthServer
    gateway: FaultyGateway
    family: Any

    @property
    def url(self) -> str:
        """Where the calls go."""
        return self.gateway.url

    def environ(self) -> dict[str, str]:
        """An environment of its own."""
        return {"THE_TOKEN": secret("environment")}

    def kept(self, name: str) -> Path:
        """A private file with the secret of a source in it."""
        path = self.folder / name
        if not path.exists():
            path.touch(0o600)
            path.write_text(secret(name), "ascii")
        return path


def secret(name: str) -> str:
    """The secret of a source."""
    return f"{CANARY}-{name.replace(' ', '-')}"


def vending(name: str) -> Callable[[CredentialRequest], Any]:
    """An async function that vends the secret of a source."""

    async def vend(request: CredentialRequest) -> Issued:
        del request
        return Issued(Bearer(secret(name)))

    return vend


class Own:
    """A provider of an app."""

    async def vend(self, request: CredentialRequest, /) -> Headers:
        del request
        return Headers({"x-tenant-key": secret("a provider")})


async def of_the_user(request: CredentialRequest) -> Bearer:
    """A credential made of the token that the app handed over."""
    assert request.user_token is not None
    return Bearer(request.user_token.reveal())


def token_for(request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
    """What the issuer answers: the secret of the source that asks, and a refresh token."""
    assertion = request.form.get("client_assertion", "")
    if request.client is not None:
        name = request.client[0]
    elif assertion.startswith("ey"):
        name = jwt.decode(assertion, options={"verify_signature": False})["sub"]
    else:
        name = request.form.get("client_id", "assertion")
    said = {
        "access_token": secret(name), "token_type": "bearer", "expires_in": 3600,
        "refresh_token": f"{secret(name)}-refresh",
    }  # fmt: skip
    return 200, {}, json.dumps(said).encode()


class Storage:
    """An app's own storage, for the SDK's provider of consents."""

    def __init__(self, name: str, token: str | None = None) -> None:
        self.name = name
        self.tokens = (
            None if token is None else OAuthToken(access_token=token, refresh_token=f"{token}-r")
        )
        self.state = ""

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return OAuthClientInformationFull(
            client_id=self.name, client_secret=f"{secret(self.name)}-client", redirect_uris=_BACK
        )

    async def set_client_info(self, client_info: Any) -> None:
        """It is registered already."""

    async def opens(self, url: str) -> None:
        """The person looks at the page, ..."""
        (self.state,) = parse_qs(urlsplit(url).query)["state"]

    async def comes_back(self) -> AuthorizationCodeResult:
        """... and comes back with a code."""
        return AuthorizationCodeResult(code=f"{secret(self.name)}-code", state=self.state)


def _program(world: World, name: str, **proof: Any) -> ClientCredentials:
    return ClientCredentials(world.issuer.url, issuer=world.issuer.origin, client_id=name, **proof)


def _consents(world: World, name: str, token: str | None = None) -> Any:
    person = Storage(name, token)
    about = OAuthClientMetadata(redirect_uris=_BACK, client_name="an app")
    return adopt(
        OAuthClientProvider(
            world.issuer.url, about, person, redirect_handler=person.opens,
            callback_handler=person.comes_back,
        )
    )  # fmt: skip


def _any_auth(name: str) -> Any:
    class Puts(vars(sdk)["httpx2"].Auth):
        """An auth of an app."""

        def auth_flow(self, request: Any) -> Iterator[Any]:
            request.headers["x-signed"] = secret(name)
            yield request

    return Puts()


def _asserting(name: str) -> Callable[[str], Any]:
    async def signed(audience: str) -> str:
        del audience
        return f"{secret(name)}-assertion"

    return signed


@cache
def _pem() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _signing(name: str, *, query: bool) -> Callable[[Any], Any]:
    async def signed(request: Any) -> Any:
        if query:
            request.url = request.url.copy_merge_params({"signature": secret(name)})
        else:
            request.headers["x-signature"] = secret(name)
        return request

    return signed


def _aws() -> Any:
    held = keys("AKIDEXAMPLE", f"{secret('SigV4')}-key", secret("SigV4"))
    return agentcore.SigV4Signer(region="us-west-2", aws=held)


SOURCES: Final[dict[str, Callable[[World, str], dict[str, Any]]]] = {
    "a bearer": lambda _, name: {"credentials": Bearer(secret(name))},
    "an api key": lambda _, name: {"credentials": ApiKey(secret(name))},
    "a password": lambda _, name: {"credentials": Basic("someone", secret(name))},
    "by service": lambda _, name: {
        "credentials": StaticCredentials({"gateway": Headers({"x-key": secret(name)})})
    },
    "a function": lambda _, name: {"credentials": vending(name)},
    "a provider": lambda _, __: {"credentials": Own()},
    "environment": lambda world, _: {
        "credentials": EnvironmentCredentials("THE_TOKEN", environ=world.environ())
    },
    "file": lambda world, name: {"credentials": FileCredentials(world.kept(name))},
    "command": lambda world, name: {
        "credentials": CommandCredentials(["/bin/cat", world.kept(name)])
    },
    "shared": lambda _, name: {"credentials": SharedCredentials(vending(name))},
    "retrying": lambda _, name: {"credentials": RetryingCredentials(vending(name))},
    "client secret": lambda world, name: {
        "credentials": _program(world, name, client_secret=f"{secret(name)}-client")
    },
    "posted client secret": lambda world, name: {
        "credentials": _program(
            world, name, client_secret=f"{secret(name)}-client", auth_method="client_secret_post"
        )
    },
    "private key": lambda world, name: {
        "credentials": _program(world, name, private_key=_pem(), algorithm="ES256")
    },
    "assertion": lambda world, name: {
        "credentials": _program(world, name, assertion=_asserting(name))
    },
    "adopted program": lambda world, name: {
        "credentials": adopt(
            ClientCredentialsOAuthProvider(
                world.issuer.url,
                Storage(name),
                client_id=name,
                client_secret=f"{secret(name)}-client",
                issuer=world.issuer.origin,
            )
        )
    },
    "adopted consent": lambda world, name: {"credentials": _consents(world, name)},
    "adopted storage": lambda world, name: {"credentials": _consents(world, name, secret(name))},
    "adopted auth": lambda world, name: {"credentials": adopt(_any_auth(name), url=world.url)},
    "a user's token": lambda _, __: {"credentials": of_the_user},
    "a signer of headers": lambda _, name: {"signer": _signing(name, query=False)},
    "a signer of queries": lambda _, name: {"signer": _signing(name, query=True)},
    "SigV4": lambda _, __: {"signer": _aws()},
}
"""Each source, as the options of a Gateway."""


async def gateway_with(world: World, name: str, **options: Any) -> Gateway:
    """A Gateway whose calls carry the secret of a source; what takes several steps was had once."""
    source = SOURCES[name](world, name)
    provider = source.get("credentials")
    if isinstance(provider, (AdoptedCredentials, ClientCredentials)):
        await provider.vend(CredentialRequest())
    made = Gateway(world.url, name=name, **source, **options)
    return made.acting_for(user_token=secret(name)) if name == "a user's token" else made


def carried(entry: Any) -> str:
    """What a request carried in its head, with the pair of Basic opened."""
    head = f"{entry.path} {entry.headers}"
    pair = b64encode(f"someone:{secret('a password')}".encode()).decode()
    return head.replace(pair, secret("a password")).replace("%2F", "/").replace("%2B", "+")


@dataclass(frozen=True)
class Echoes(Step):
    """Answers with everything secret that the request carried, in every part of an answer."""

    status: str
    media: str = "application/json"
    extra: str = ""
    readable: bool = True

    async def play(self, exchange: Exchange) -> None:
        """Quote it as reason, in header lines, and plain, escaped and in base64 in the body."""
        received = exchange.received
        values = [
            value.decode("latin-1")
            for name, value in received.headers
            if name.lower() in _CARRY or b"CANARY" in value
        ]
        query = parse_qs(urlsplit(received.target).query)
        said = " ".join([*values, *query.get("signature", ())])
        hidden = b64encode(said.encode()).decode()
        lines = "".join(f"{name}: {said}\r\n" for name in ("x-echo", "set-cookie", "link"))
        challenge = f'www-authenticate: Bearer realm="{hidden}", error_description="{said}"\r\n'
        body = self._body(received.id_json.decode(), said, hidden)
        head = f"HTTP/1.1 {self.status} {said}\r\ncontent-type: {self.media}\r\n"
        extra = self.extra.replace("SAID", hidden)
        whole = f"{head}content-length: {len(body)}\r\n{lines}{challenge}{extra}\r\n{body}"
        exchange.complete = True
        await exchange.write(whole.encode("latin-1"))

    def _body(self, rpc_id: str, said: str, hidden: str) -> str:
        """The echo as it is, in escapes and in base64, in a result or an error."""
        texts = [{"type": "text", "text": text} for text in (said, "ESCAPED", hidden)]
        part: dict[str, Any] = {"result": {"content": texts, "resultType": "complete"}}
        if not self.status.startswith("200"):
            part = {"error": {"code": -32000, "message": said, "data": {said: ["ESCAPED"]}}}
        escapes = "".join(f"\\u{ord(letter):04x}" for letter in said)
        written = json.dumps({"jsonrpc": "2.0", **part})[:-1].replace("ESCAPED", escapes)
        body = f'{written},"id":{rpc_id}}}'
        if self.media == "text/event-stream":
            return f": {said}\nid: {hidden}\ndata: {body}\n\n"
        return body if self.readable else f"{body}{said}"


_CARRY: Final = frozenset({b"authorization", b"x-api-key", b"x-amz-security-token"})

ENDS: Final[dict[str, Step]] = {
    "answered with an echo": Echoes("200"),
    "events with an echo": Echoes("200", media="text/event-stream"),
    "401 with an echo": Echoes("401"),
    "403 with an echo": Echoes("403"),
    "429 with an echo": Echoes("429", extra="retry-after: 0\r\n"),
    "500 with an echo": Echoes("500"),
    "a page with an echo": Echoes("502", media="text/html"),
    "a redirect with an echo": Echoes("307", extra="location: /mcp?t=SAID\r\n"),
    "an echo that cannot be read": Echoes("200", readable=False),
    "reset": Reset(),
    "cut in a body": CutJson(),
    "cut in events": SseCut(),
    "cancelled in flight": Slow(20.0),
    "cancelled in a body": Trickle(20.0),
    "cancelled in events": HeldStream(20.0),
    "the client's limit": Slow(20.0),
    "the call's deadline": Slow(20.0),
}
"""How a call that was sent may end."""
