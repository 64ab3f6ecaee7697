"""R107, R109: keys that STS gives are in no log, though botocore prints all that it sends and gets.

In a process of its own, because a logger that is born only while keys are fetched has to be silent.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from surefoot.agentcore._silence import silence

WEB_TOKEN: Final = "canary-web-identity-token"
SECRET: Final = "canary-secret-key"
SESSION: Final = "canary-session-token"
ANSWER: Final = f"""\
<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>
<SessionToken>{SESSION}</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>
"""

PROGRAM: Final = """
import logging, sys
import anyio
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)

async def by_us():
    from surefoot.agentcore._aws_credentials import AwsCredentials
    keys = await AwsCredentials().frozen()
    assert keys.token == "canary-session" + "-token"

def by_others():
    from botocore.session import Session
    assert Session().get_credentials().get_frozen_credentials().token

logging.getLogger("botocore.credentials").debug("before")
for who in sys.argv[1:]:
    anyio.run(by_us) if who == "us" else by_others()
logging.getLogger("botocore.credentials").debug("after")
"""


class Sts(BaseHTTPRequestHandler):
    """Takes an identity token, and gives keys for it."""

    def do_POST(self) -> None:
        """Answer as STS does."""
        asked = self.rfile.read(int(self.headers["content-length"])).decode("ascii")
        data = ANSWER.encode() if WEB_TOKEN in asked else b""
        self.send_response(200 if data else 403)
        self.send_header("content-type", "text/xml")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@pytest.fixture
def sts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """An STS on loopback, and the environment of a pod whose role it gives."""
    token = tmp_path / "token"
    token.write_text(WEB_TOKEN, "utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), Sts) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        for name, value in {
            "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{server.server_port}",
            "AWS_DEFAULT_REGION": "us-west-2",
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/canary",
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        }.items():
            monkeypatch.setenv(name, value)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        yield
        server.shutdown()
        thread.join(5)


def printed(*who: str) -> str:
    """The log of a program in which keys are fetched by us, by others, or by one after another."""
    command = [sys.executable, "-c", PROGRAM, *who]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stderr
    assert "before" in done.stdout
    assert "after" in done.stdout, "whoever is not inside still prints"
    return done.stdout


@pytest.mark.usefixtures("sts")
def test_the_keys_that_a_role_is_given_are_in_no_log() -> None:
    """R107, R109. Nor is the token that they are given for."""
    log = printed("us")
    for secret in (WEB_TOKEN, SECRET, SESSION):
        assert secret not in log


@pytest.mark.usefixtures("sts")
@pytest.mark.parametrize("who", [("others",), ("us", "others")], ids="-".join)
def test_without_the_silence_the_log_shows_them(who: tuple[str, ...]) -> None:
    """The control: anybody else's use prints as before, also after ours."""
    log = printed(*who)
    for secret in (WEB_TOKEN, SECRET, SESSION):
        assert secret in log


def test_one_silence_within_another_ends_neither() -> None:
    """R107. The outer one lasts, and after both of them everybody's words are heard again."""
    heard: list[str] = []
    logger = logging.getLogger("botocore.within")

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    ear = Ear()
    logger.addHandler(ear)
    logger.setLevel(logging.DEBUG)
    try:
        with silence():
            with silence():
                logger.debug("inner")
            logger.debug("outer")
        logger.debug("after")
    finally:
        logger.removeHandler(ear)
        logger.setLevel(logging.NOTSET)
    assert heard == ["after"]
