"""R88, R93 to R98, B12, D19, D22, D25. Kind g of the bug reports: what an answer is read as.

An answer that can be read in two ways is read in none, one that is not whole is no answer, one that
is too large is not read to its end. Each is told by its own name, once, and leads to no second
send: by then the tool ran. What the client gets to read is written anew.
"""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import FRAMINGS, RESULT, SOUND, as_body, as_stream, say
from support.sessions import KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Gateway, Retry
from surefoot.testing import CutJson, FaultyGateway, Reset, Step, TruncatedGzip, WrongLength

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

NOT_ENDED: Final[dict[str, str]] = {
    "no line end": f"data: {SOUND}",
    "one line end": f"data: {SOUND}\n",
    "one line end of Windows": f"data: {SOUND}\r\n",
    "one line end of old": f"data: {SOUND}\r",
    "half of it": f"data: {SOUND[:40]}",
    "half of it and a line end": f"data: {SOUND[:40]}\n",
    "a field after it": f"data: {SOUND}\nid: e-1\n",
    "a comment after it": f"data: {SOUND}\n: ping\n",
    "a whole one before": f': hello\n\nevent: message\ndata: {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":1}}}}\n\ndata: {SOUND}\n',  # noqa: E501
    "nothing at all": "",
    "a comment": ": ping\n\n",
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("how", NOT_ENDED)
async def test_an_event_that_was_not_ended_is_no_answer_and_its_call_ends_at_once(
    how: str, framing: str
) -> None:
    """D22, R27, C31 of the bug reports. Neither believed, nor waited for, nor asked for again."""
    for family in FAMILIES:
        with FaultyGateway() as faulty:
            faulty.script("charge", as_stream(NOT_ENDED[how], framing), repeat=True)
            gateway = Gateway(faulty.url, retry=Retry(base_delay=0.01))
            async with gateway.protect(client_of(family)) as client:
                with anyio.fail_after(2):
                    said = await say(client, faulty.url)
            assert (said.kind, said.outcome["may_have_run"]) == ("cut-stream", True)
            assert "as written" not in said.response.text
            assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["one line end", "half of it", "a field after it", "a comment"])
async def test_the_caller_of_the_sdk_is_told_so_and_its_session_goes_on(
    how: str, kind: Kind
) -> None:
    """B1, D22, C31 of the bug reports. The bare client waits for ever, or is told of a timeout."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url)
        async with opened(gateway.transport(), kind) as session:
            faulty.script("charge", as_stream(NOT_ENDED[how]))
            with anyio.fail_after(2):
                told = await session.call("charge", {"amount": 1})
            assert (told.kind, told.facts["may_have_run"]) == ("cut-stream", True)
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


ENDED: Final[dict[str, str]] = {
    "two line ends": f"data: {SOUND}\n\n",
    "two of Windows": f"data: {SOUND}\r\n\r\n",
    "two of old": f"data: {SOUND}\r\r",
    "of two kinds": f"data: {SOUND}\n\r",
    "and the other way": f"data: {SOUND}\r\n\n",
    "without a blank": f"data:{SOUND}\n\n",
    "in two lines": f'data: {{"jsonrpc":"2.0","id":ID,\ndata: "result":{RESULT}}}\n\n',
    "and a half one after it": f"data: {SOUND}\n\ndata: {SOUND[:30]}",
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("how", ENDED)
async def test_an_event_that_was_ended_is_the_answer(how: str, framing: str) -> None:
    """D22, C31 of the bug reports. The control; what comes after the answer takes nothing back."""
    for family in FAMILIES:
        with FaultyGateway() as faulty:
            faulty.script("charge", as_stream(ENDED[how], framing))
            async with Gateway(faulty.url).protect(client_of(family)) as client:
                said = await say(client, faulty.url)
            assert (said.text, said.outcome) == ("as written", {})


NOT_WHOLE: Final[dict[str, tuple[Step, str]]] = {
    "below its length": (CutJson("length"), "no-answer"),
    "in a chunk": (CutJson("chunked"), "no-answer"),
    "whole, without its last chunk": (CutJson("chunked", keep=10_000), "no-answer"),
    "unseen by HTTP": (CutJson("close"), "unreadable"),
    "before its first byte": (CutJson("length", keep=0), "no-answer"),
    "a length too long": (WrongLength("long"), "no-answer"),
    "a length too short": (WrongLength("short"), "unreadable"),
    "two lengths": (WrongLength("twice"), "no-answer"),
    "a reset": (Reset("in-body"), "no-answer"),
    "gzip without its checksum": (TruncatedGzip(), "unreadable"),
    "gzip cut earlier": (TruncatedGzip(cut=20), "unreadable"),
}


@pytest.mark.parametrize("how", NOT_WHOLE)
@pytest.mark.parametrize("family", FAMILIES)
async def test_half_an_answer_is_none(family: str, how: str) -> None:
    """R27, B12, C31 of the bug reports. The same kind, in bodies that are no streams."""
    step, outcome = NOT_WHOLE[how]
    with FaultyGateway() as faulty:
        faulty.script("charge", step, repeat=True)
        async with Gateway(faulty.url).protect(client_of(family)) as client:
            with anyio.fail_after(2):
                said = await say(client, faulty.url)
        assert (said.kind, said.outcome["may_have_run"]) == (outcome, True)
        assert "charged" not in said.response.text
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_mark_of_order_before_a_stream_is_refused_by_name(family: str) -> None:
    """R95, C33 of the bug reports. Some readers skip it, others lose the event behind it."""
    with FaultyGateway() as faulty:
        faulty.script("charge", as_stream(f"\ufeffdata: {SOUND}\n\n"))
        async with Gateway(faulty.url).protect(client_of(family)) as client:
            said = await say(client, faulty.url)
    assert (said.kind, said.outcome["rule"]) == ("unreadable", "byte-order-mark")


def _in_result(member: str) -> str:
    return SOUND.replace('"isError":false', f'"isError":false,{member}')


AMBIGUOUS: Final[dict[str, tuple[str | bytes, str]]] = {
    "an id twice": (SOUND.replace('"id":ID', '"id":ID,"id":8'), "duplicate-key"),
    "the same id twice": (SOUND.replace('"id":ID', '"id":ID,"id":ID'), "duplicate-key"),
    "a result twice": (SOUND[:-1] + f',"result":{RESULT}}}', "duplicate-key"),
    "an id twice, once escaped": (SOUND[:-1] + ',"\\u0069d":ID}', "duplicate-key"),
    "a result twice, once escaped": (
        SOUND[:-1] + f',"\\u0072esult":{RESULT}}}', "duplicate-key",
    ),
    "a name twice deep inside": (_in_result('"x":{"y":[{"a":1,"a":1}]}'), "duplicate-key"),
    "an empty name twice": (_in_result('"":1,"":2'), "duplicate-key"),
    "NaN": (_in_result('"x":NaN'), "not-json"),
    "Infinity": (_in_result('"x":[Infinity]'), "not-json"),
    "minus Infinity": (_in_result('"x":-Infinity'), "not-json"),
    "beyond a double": (_in_result('"x":1e999'), "not-finite"),
    "beyond it below": (_in_result('"x":-1e999'), "not-finite"),
    "two answers": (SOUND + SOUND, "trailing-data"),
    "a word after it": (SOUND + "x", "trailing-data"),
    "a NUL after it": (SOUND + "\x00", "trailing-data"),
    "a mark of order": (b"\xef\xbb\xbf" + SOUND.encode(), "byte-order-mark"),
    "UTF-16": (SOUND.encode("utf-16-le"), "not-json"),
    "Latin-1": (_in_result('"x":"\xe9"').encode("latin-1"), "not-utf8"),
    "a surrogate in UTF-8": (_in_result('"x":"').encode() + b'\xed\xa0\x80"}}', "not-utf8"),
    "half of a pair": (_in_result('"x":"\\ud800"'), "lone-surrogate"),
    "single quotes": (SOUND.replace('"', "'"), "not-json"),
    "a comma too many": (SOUND.replace("}}", ",}}"), "not-json"),
    "a comment": (SOUND.replace("{", "{/* x */", 1), "not-json"),
    "a zero before": (_in_result('"x":01'), "not-json"),
    "a plus": (_in_result('"x":+1'), "not-json"),
    "a control character": (_in_result('"x":"\t"'), "not-json"),
    "a batch": (f"[{SOUND}]", "batch"),
    "the result by two cases": (SOUND[:-1] + ',"Result":{"content":[]}}', "member-case"),
    "the result by another case": (SOUND.replace('"result"', '"Result"'), "member-case"),
    "the id by another case": (SOUND.replace('"id"', '"ID_"').replace("ID_", "Id"), "member-case"),
    "the id of another": (SOUND.replace("ID", "4711"), "wrong-id"),
    "the id as a text": (SOUND.replace("ID", '"ID"'), "wrong-id"),
    "the id as a fraction": (SOUND.replace("ID", "ID.0"), "bad-id"),
}  # fmt: skip
IN_EVENTS: Final = [name for name, (text, _) in AMBIGUOUS.items() if isinstance(text, str)]


@pytest.mark.parametrize("how", AMBIGUOUS)
async def test_what_two_readers_would_read_in_two_ways_is_read_by_none(how: str) -> None:
    """R94 to R98, D18, C33 of the bug reports. Refused by name; the tool ran, and is not run again.

    As a body and, where the bytes can stand in an event, as an event.
    """
    text, rule = AMBIGUOUS[how]
    steps = [as_body(text)]
    if how in IN_EVENTS:
        steps.append(as_stream(f"data: {text}\n\n"))
    for family in FAMILIES:
        for step in steps:
            with FaultyGateway() as faulty:
                faulty.script("charge", step)
                async with Gateway(faulty.url).protect(client_of(family)) as client:
                    said = await say(client, faulty.url)
                assert said.kind == "unreadable"
                assert (said.outcome["rule"], said.outcome["may_have_run"]) == (rule, True)
                assert "as written" not in said.response.text
                assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


READ: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "blanks everywhere": (SOUND.replace(":", " : ").replace(",", " ,\n"), {}),
    "escapes": (SOUND.replace("as written", "as\\u0020written"), {}),
    "a name by two cases": (_in_result('"x":1,"X":2'), {"x": 1, "X": 2}),
    "a large number": (_in_result('"x":18446744073709551616'), {"x": 2**64}),
    "a fraction": (_in_result('"x":1.0e2'), {"x": 100.0}),
    "a pair": (_in_result('"x":"\\ud83d\\ude00"'), {"x": "\U0001f600"}),
    "words that look like no numbers": (_in_result('"x":"NaN Infinity"'), {"x": "NaN Infinity"}),
}


@pytest.mark.parametrize("how", READ)
@pytest.mark.parametrize("family", FAMILIES)
async def test_what_can_be_read_in_one_way_is_written_anew(family: str, how: str) -> None:
    """R92, R96, C33 of the bug reports. The client reads what was checked, and nothing else."""
    text, members = READ[how]
    with FaultyGateway() as faulty:
        faulty.script("charge", as_body(text))
        async with Gateway(faulty.url).protect(client_of(family)) as client:
            said = await say(client, faulty.url)
    assert (said.text, said.outcome) == ("as written", {})
    assert {**said.message["result"], **members} == said.message["result"]
    written = json.dumps(said.message, ensure_ascii=False, separators=(",", ":"))
    assert said.response.text == written.replace("1.0e2", "100.0")
