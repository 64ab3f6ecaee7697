"""The law of this file: the order of the layers is fixed here, and nowhere else.

Answering > Retrying > Reading > Vending > the wire (DESIGN section 3). Retrying stands outside
vending and signing, so every attempt is vended and signed afresh (R18); Reading stands below
Retrying, so rules and hooks see only what was scrubbed and a body is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from surefoot.policy import Retry, Rule, ThrottleRule

from ._answering import AnsweringTransport
from ._content import ACCEPTED_ENCODINGS
from ._fencing import Fencing
from ._reading import ReadingTransport
from ._retrying import RetryingTransport
from ._vending import VendingTransport

if TYPE_CHECKING:
    from surefoot.credentials import CredentialProvider, Secret
    from surefoot.errors import AuthorizationRequiredError
    from surefoot.evidence import Ledger, SpanSource
    from surefoot.policy import Fence, Replay

    from ._calls import CallTable
    from ._clock import Clock
    from ._endpoint import Endpoint
    from ._family import AsyncTransport
    from ._learned import Learned
    from ._vending import Signer

__all__ = ["StackPlan", "build_stack", "is_stack_for", "retrying"]

_ON: Final = Retry()
_Layer = TypeVar("_Layer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """Everything that one Gateway declares, as its layers need it."""

    owner: object
    endpoint: Endpoint
    name: str | None
    credentials: CredentialProvider | None
    signer: Signer | None
    service: str
    scopes: tuple[str, ...]
    mode: Literal["machine", "user"]
    headers: Mapping[str, str]
    retry: Retry | None
    replay: Replay
    rules: tuple[Rule, ...]
    answers: Literal["checked", "strict"]
    caller_timeout: float | None
    auth_above: bool
    on_authorization: Callable[[AuthorizationRequiredError], object] | None
    ledger: Ledger | None
    clock: Clock
    draw: Callable[[], float]
    principal: str | None = None
    user_token: Secret | None = None
    fence: Fence | None = None
    calls: CallTable | None = None
    learned: Learned | None = None
    spans: SpanSource | None = None


def build_stack(wire: AsyncTransport, plan: StackPlan) -> AnsweringTransport:
    """Build the layers of one Gateway over a transport.

    A transport that is itself a stack for the same endpoint is joined and not wrapped (R30): its
    series takes this Gateway's ledger and declaration.

    Raises:
        ValueError: the stack below declares something else for the same endpoint, acts for
            another principal, or has other credentials or another signer.
    """
    if isinstance(wire, AnsweringTransport) and _same_endpoint(wire, plan):
        return _joined(wire, plan)
    vending = VendingTransport(
        wire,
        credentials=plan.credentials,
        signer=plan.signer,
        service=plan.service,
        scopes=plan.scopes,
        mode=plan.mode,
        headers={**plan.headers, "accept-encoding": ACCEPTED_ENCODINGS},
        principal=plan.principal,
        user_token=plan.user_token,
    )
    below: AsyncTransport = ReadingTransport(
        vending, endpoint=plan.endpoint, policy=plan.answers, clock=plan.clock
    )
    # With retry=None there is still a series, which recognises nothing: the one that is recorded.
    below = RetryingTransport(
        below,
        retry=plan.retry,
        replay=plan.replay,
        rules=_rules(plan),
        name=plan.name,
        caller_timeout=plan.caller_timeout,
        redirects=True,
        ledger=plan.ledger,
        clock=plan.clock,
        draw=plan.draw,
    )
    return AnsweringTransport(
        below,
        endpoint=plan.endpoint,
        beside=wire,
        replay=plan.replay,
        name=plan.name,
        auth_above=plan.auth_above,
        on_authorization=plan.on_authorization,
        ledger=plan.ledger,
        clock=plan.clock,
        owner=plan.owner,
        fencing=_fencing(plan),
        calls=plan.calls,
        learned=plan.learned,
        spans=plan.spans,
    )


def _fencing(plan: StackPlan) -> Fencing | None:
    if plan.fence is None:
        return None
    return Fencing(plan.fence, plan.replay, principal=plan.principal)


def _rules(plan: StackPlan) -> tuple[Rule, ...]:
    """The throttle rule, where it is on; an adapter brings all of its own, with their limits (R60).

    The first verdict counts (R69), and an adapter knows forms of a 429 that say more than its head.
    """
    if plan.rules or plan.retry is None:
        return plan.rules
    return (Rule(recognise=ThrottleRule(), on_retry=plan.retry.on_retry),)


def is_stack_for(transport: object, owner: object) -> bool:
    """Whether the transport is already the stack of this very Gateway."""
    return isinstance(transport, AnsweringTransport) and transport.owner is owner


def _same_endpoint(stack: AnsweringTransport, plan: StackPlan) -> bool:
    return stack.endpoint is not None and stack.endpoint.url == plan.endpoint.url


def _joined(stack: AnsweringTransport, plan: StackPlan) -> AnsweringTransport:
    if stack.principal != plan.principal:
        msg = (
            "client: it is already protected for another principal, whose credentials it would "
            "use; protect a client of its own for each"
        )
        raise ValueError(msg)
    vending = _below(stack, VendingTransport)
    for option in ("credentials", "signer"):
        brought = getattr(plan, option)
        if brought is not None and vending is not None and brought is not vending.uses(option):
            msg = (
                f"client: it is already protected by another Gateway, whose {option} would be used "
                f"and not this one's; give it to the first, or protect a client of its own"
            )
            raise ValueError(msg)
    # The outermost layer opens the record, so a ledger that joins has to reach it (R83).
    changes: dict[str, Any] = {} if plan.ledger is None else {"ledger": plan.ledger}
    series = _below(stack, RetryingTransport)
    if series is None:
        return stack.rewrapped(stack.wrapped, **changes)
    replay = plan.replay if plan.replay.declares else None
    joined = series.joined(ledger=plan.ledger, replay=replay)
    below = _rebuilt(stack.wrapped, series, joined)
    if replay is None or replay == series.replay:
        # What the first Gateway's other clients must not send again is in its fence, and stays
        # there; both can settle it.
        if stack.fencing is not None:
            stack.fencing.followed_by(plan.fence)
    else:
        # The declaration is this Gateway's, and so is the fence that keeps to it.
        changes |= {"replay": replay, "fencing": _fencing(plan), "learned": plan.learned}
    return stack.rewrapped(below, **changes)


def retrying(
    wrapped: AsyncTransport | None = None, retry: Retry | None = _ON, **settings: Any
) -> AsyncTransport | None:
    """One series over ``wrapped``, or one more rule inside the series that it already runs.

    Args:
        wrapped: The transport below; ``None`` is the family's own, chosen at the first call (R78).
        retry: The options; ``None`` returns ``wrapped`` itself, untouched, "none" included (R75).
        settings: As ``RetryingTransport`` takes them; not for a join.

    Returns:
        A transport that runs exactly one series (R76, R77, R84).
    """
    if retry is None:
        return wrapped
    series = None if wrapped is None else _below(wrapped, RetryingTransport)
    if wrapped is None or series is None:
        return RetryingTransport(wrapped, retry=retry, **settings)
    rule = Rule(recognise=ThrottleRule(), limits=retry.limits, on_retry=retry.on_retry)
    return _rebuilt(wrapped, series, series.joined(rule))


def _below(transport: Any, layer: type[_Layer]) -> _Layer | None:
    """The layer of a kind inside a transport, through layers that say what they wrap."""
    while transport is not None and not isinstance(transport, layer):
        if not hasattr(transport, "rewrapped"):
            return None
        transport = transport.wrapped
    return transport


def _rebuilt(top: Any, series: RetryingTransport, joined: RetryingTransport) -> Any:
    """The same layers over the joined series, which thereby lies inside all of them (R84)."""
    if top is series:
        return joined
    return top.rewrapped(_rebuilt(top.wrapped, series, joined))
