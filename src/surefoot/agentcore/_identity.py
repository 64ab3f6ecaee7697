"""The law of this file: a credential of AgentCore Identity is vended for one attempt, and not kept.

Two questions make one: who is calling (a workload access token: for a user's own token, for a
user's id, or for the program itself), and what it may have (an OAuth token or an API key). No life
is stated with any of them, so none is kept; whoever wants that puts ``SharedCredentials`` around
it. A consent that a person has to give is an answer, one that failed ends at once, and nobody polls
behind the caller's back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, ClassVar, Final, Literal, get_args

from surefoot.credentials import (
    ApiKey,
    AuthorizationRequired,
    Bearer,
    CredentialRequest,
    Issued,
    Secret,
    sealed,
    unseen,
)
from surefoot.errors import CredentialError
from surefoot.transports import Clock, SystemClock

from ._address import checked_endpoint, checked_region
from ._consents import Consents, consent_key
from ._identity_calls import NOT_VALID, Answer, IdentityCalls, Trouble
from ._options import (
    a_clock,
    a_name,
    a_return_url,
    broken_function,
    broken_word,
    header_name,
    one_of,
    positive_seconds,
    texts,
)

__all__ = ["AgentCoreIdentity"]

Kind = Literal["oauth2", "api-key"]
Flow = Literal["M2M", "USER_FEDERATION", "ON_BEHALF_OF_TOKEN_EXCHANGE"]

_NOBODY: Final = "a user flow needs a user: use acting_for(), or pass workload_token="
_NOTHING: Final = "AgentCore Identity answered without a credential"
_ASKED_FOR: Final = "the very one with which the consent was asked for"
_FAILED: Final = "the consent failed or was refused; it has to be asked for again"


class AgentCoreIdentity:
    """A provider that asks AgentCore Identity for every attempt.

    Who is calling, the first that there is: the user's own token and the user's id (from
    ``Gateway.acting_for``), ``workload_token``, the program itself by ``workload_name``.

    Args:
        region: The region.
        workload_name: The workload identity to act as; not needed beside ``workload_token``.
        provider: The credential provider's name; by default what the Gateway calls its service.
        kind: ``"oauth2"`` or ``"api-key"``.
        flow: The OAuth flow; by default ``M2M`` for a machine, ``USER_FEDERATION`` for a user.
        return_url: Where the browser returns to after a consent; registered with the workload, and
            needed by ``USER_FEDERATION``.
        api_key_header: The header for an API key.
        workload_token: Inside the Runtime, a function that returns the workload access token that
            came with the request: a workload of the service's own cannot ask for one.
        parameters: More parameters of the authorization request.
        aws: A boto3 session, or ``None`` for the default chain.
        endpoint: Another origin than the region's public one.
        timeout: Seconds to connect, and seconds of silence.
        clock: Time.

    Raises:
        ImportError: boto3 is not installed.
        TypeError: an option has the wrong type.
        ValueError: an option cannot be one, or two contradict each other.
    """

    __slots__ = (
        "_calls", "_clock", "_consents", "_flow", "_header", "_kind", "_parameters", "_provider",
        "_return_url", "_workload", "_workload_token",
    )  # fmt: skip

    refreshable: ClassVar[bool] = True
    """After a rejection the service is asked again; for a user that means a fresh consent."""

    @unseen
    def __init__(
        self,
        *,
        region: str,
        workload_name: str | None = None,
        provider: str | None = None,
        kind: Kind = "oauth2",
        flow: Flow | None = None,
        return_url: str | None = None,
        api_key_header: str = "x-api-key",
        workload_token: Callable[[], str | None] | None = None,
        parameters: Mapping[str, str] | None = None,
        aws: object = None,
        endpoint: str | None = None,
        timeout: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        checked_region(region)
        a_name("workload_name", workload_name)
        a_name("provider", provider)
        one_of("kind", kind, get_args(Kind))
        if flow is not None:
            one_of("flow", flow, get_args(Flow))
        if workload_name is None and workload_token is None:
            raise ValueError("workload_name: is needed, unless workload_token= is given")
        broken = broken_function(workload_token)
        if broken is not None:
            del workload_token
            raise broken
        a_clock(clock)
        more = texts("parameters", parameters)
        self._workload = workload_name
        self._provider = provider
        self._kind = kind
        self._flow = flow
        self._return_url = a_return_url(return_url)
        self._header = header_name("api_key_header", api_key_header)
        self._workload_token = workload_token
        self._parameters = None if more is None else sealed(more)
        self._clock: Clock = clock or SystemClock()
        self._consents = Consents()
        self._calls = IdentityCalls(
            region=region,
            aws=aws,
            endpoint=None if endpoint is None else checked_endpoint(endpoint),
            timeout=positive_seconds("timeout", timeout),
        )

    def __repr__(self) -> str:
        return "AgentCoreIdentity(...)"

    async def vend(self, request: CredentialRequest, /) -> Issued | AuthorizationRequired:
        """Ask for one credential.

        Raises:
            TransientCredentialError: the service is busy, failing or out of reach.
            CredentialError: it refused, or a consent failed.
            InvalidCredentialError: what it gave may not stand in a header (B8).
        """
        vended = await self._vend(request)
        if isinstance(vended, CredentialError):
            raise vended
        return vended

    def whose(self, request: CredentialRequest, /) -> str | None:
        """A digest of the token that ``workload_token`` returns, where nothing else names the user.

        ``SharedCredentials`` keeps a credential for each.

        Raises:
            CredentialError: there is none.
        """
        if self._workload_token is None or _names_a_user(request):
            return None
        brought = self._brought(request)
        if isinstance(brought, CredentialError):
            raise brought
        return blake2b(brought.reveal().encode("utf-8", "surrogatepass")).hexdigest()

    async def complete(
        self, session_uri: str, *, user_token: str | None = None, user_id: str | None = None
    ) -> None:
        """Say that the person who came back to ``return_url`` is the one who was sent.

        The service hands out no token before that. It wants the very token or id with which the
        consent was asked for.

        Raises:
            TransientCredentialError: the service is busy, failing or out of reach.
            CredentialError: it refused.
            TypeError: not exactly one of ``user_token`` and ``user_id``, or one is no ``str``.
            ValueError: one is empty.
        """
        if (user_token is None) == (user_id is None):
            del user_token, user_id
            raise TypeError("complete: takes exactly one of user_token and user_id")
        broken = broken_word("session_uri", session_uri, "the one that came with the consent")
        if user_token is not None:
            broken = broken or broken_word("user_token", user_token, _ASKED_FOR)
        else:
            broken = broken or broken_word("user_id", user_id, _ASKED_FOR)
        if broken is not None:
            del user_token, user_id, session_uri
            raise broken
        who = {"userId": user_id} if user_token is None else {"userToken": user_token}
        del user_token
        answer = await self._calls.ask(
            "complete_resource_token_auth", userIdentifier=who, sessionUri=session_uri
        )
        del who
        if isinstance(answer, Trouble):
            raise answer.error("identity")

    async def _vend(
        self, request: CredentialRequest
    ) -> Issued | AuthorizationRequired | CredentialError:
        """Everything that happens while a token is at hand; returns an error, raises none."""
        workload = await self._workload_access(request)
        if isinstance(workload, CredentialError):
            return workload
        name = self._provider or request.service
        if self._kind == "api-key":
            answer = await self._calls.ask(
                "get_resource_api_key",
                workloadIdentityToken=workload.reveal(),
                resourceCredentialProviderName=name,
            )
            if isinstance(answer, Trouble):
                return answer.error(request.service)
            return _issued(
                answer.get("apiKey"), lambda key: ApiKey(key, header=self._header), request
            )
        return await self._oauth(request, name, workload)

    async def _oauth(
        self, request: CredentialRequest, name: str, workload: Secret
    ) -> Issued | AuthorizationRequired | CredentialError:
        """Ask for an OAuth token, and tell a consent from a failure."""
        flow = self._flow or ("USER_FEDERATION" if request.mode == "user" else "M2M")
        unnamed = self._workload_token is not None and not _names_a_user(request)
        brought = workload.reveal() if unnamed else ""
        key = consent_key(request, name, brought)
        asked = self._consents.under_way(key, self._clock.monotonic())
        for_a_user = flow == "USER_FEDERATION"
        again = request.force and asked is None
        answer = await self._calls.ask(
            "get_resource_oauth2_token",
            workloadIdentityToken=workload.reveal(),
            resourceCredentialProviderName=name,
            scopes=list(request.scopes),
            oauth2Flow=flow,
            sessionUri=None if asked is None else asked.session_uri,
            resourceOauth2ReturnUrl=self._return_url,
            forceAuthentication=True if again and for_a_user else None,
            customParameters=None if self._parameters is None else self._parameters(),
        )
        if isinstance(answer, Trouble):
            if not answer.transient and asked is not None:
                self._consents.over(key, asked)  # a session that is gone must not be polled again
            if for_a_user and self._return_url is None and answer.reason == NOT_VALID:
                answer = Trouble(f"{NOT_VALID}; a consent needs return_url=", transient=False)
            return answer.error(request.service)
        if answer.get("accessToken"):
            self._consents.over(key)
            return _issued(answer["accessToken"], Bearer, request)
        if answer.get("sessionStatus") == "FAILED":
            if asked is not None:
                self._consents.over(key, asked)
            return CredentialError(_FAILED, service=request.service)
        return self._asked(answer, asked, key, request)

    def _asked(
        self,
        answer: Answer,
        asked: AuthorizationRequired | None,
        key: bytes,
        request: CredentialRequest,
    ) -> AuthorizationRequired | CredentialError:
        """The page that a person has to open: the new one, or the one that is still open."""
        url, session = answer.get("authorizationUrl"), answer.get("sessionUri")
        if not url:
            return asked or CredentialError(_NOTHING, service=request.service)
        try:
            consent = AuthorizationRequired(request.service, url, session)
        except (TypeError, ValueError):
            return CredentialError("the authorization URL is none", service=request.service)
        if asked is None or session != asked.session_uri:
            # A page that is still open is as old as it was: asking again does not renew it.
            return self._consents.begun(key, consent, self._clock.monotonic(), after=asked)
        return consent

    async def _workload_access(self, request: CredentialRequest) -> Secret | CredentialError:
        """Who is calling, as the service's own token: the first of the ladder that there is."""
        operation, given = "get_workload_access_token", {}
        user = request.mode == "user" or self._flow not in {None, "M2M"}
        if request.user_token is not None:
            operation += "_for_jwt"
            given = {"userToken": request.user_token.reveal()}
        elif request.principal is not None:
            operation += "_for_user_id"
            given = {"userId": request.principal}
        elif self._workload_token is not None:
            return self._brought(request)
        elif user:
            return CredentialError(_NOBODY, service=request.service)
        answer = await self._calls.ask(operation, workloadName=self._workload, **given)
        del given
        if isinstance(answer, Trouble):
            return answer.error(request.service)
        return _secret(answer.get("workloadAccessToken"), request)

    def _brought(self, request: CredentialRequest) -> Secret | CredentialError:
        """The token that came with the request that the program answers now."""
        function: Any = self._workload_token
        try:
            return _secret(function(), request)
        except Exception as error:  # noqa: BLE001 - its text may quote the token
            reason = f"workload_token raised {type(error).__name__}"
        return CredentialError(reason, service=request.service)


def _names_a_user(request: CredentialRequest) -> bool:
    return request.user_token is not None or request.principal is not None


def _secret(token: object, request: CredentialRequest) -> Secret | CredentialError:
    if isinstance(token, str) and token:
        return Secret(token)
    return CredentialError("there is no workload access token", service=request.service)


def _issued(
    value: object, kind: Callable[[str], Bearer | ApiKey], request: CredentialRequest
) -> Issued | CredentialError:
    """The credential, or why what was given is none."""
    if not isinstance(value, str) or not value:
        return CredentialError(_NOTHING, service=request.service)
    try:
        return Issued(kind(value))
    except CredentialError as error:
        broken = type(error)(error.reason, service=request.service)
    return broken
