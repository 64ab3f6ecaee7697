"""R115: the AWS libraries stay out of an import, and what needs one says what to install."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

BLOCKED: Final = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"boto3", "botocore", "s3transfer"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""

PROGRAM: Final = """
from surefoot import Bearer, agentcore

URL = "https://gw-1.gateway.bedrock-agentcore.us-west-2.amazonaws.com/mcp"
ARN = "arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/orders-Ab12"
print(agentcore.gateway(URL, credentials=Bearer("a-token")))
print(agentcore.runtime(ARN, credentials=Bearer("a-token")))
for build in (
    lambda: agentcore.gateway(URL),
    lambda: agentcore.runtime(ARN),
    lambda: agentcore.SigV4Signer(region="us-west-2"),
    lambda: agentcore.AgentCoreIdentity(region="us-west-2", workload_name="agent"),
):
    try:
        build()
    except ImportError as error:
        print(error, error.name, error.__context__)
"""

LOADED: Final = """
import sys
import surefoot, surefoot.agentcore
print([name for name in sys.modules if name.partition(".")[0] in {"boto3", "botocore"}])
"""


def run(program: str) -> str:
    """What a program prints, alone in a process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_without_the_extra_what_needs_none_works_and_the_rest_says_what_to_install() -> None:
    needs = "surefoot.agentcore needs {0} for this: pip install 'surefoot[agentcore]' {0} None"
    assert run(BLOCKED + PROGRAM).splitlines() == [
        "Gateway('https://gw-1.gateway.bedrock-agentcore.us-west-2.amazonaws.com')",
        "Gateway('https://bedrock-agentcore.us-west-2.amazonaws.com')",
        *([needs.format("botocore")] * 3),
        needs.format("boto3"),
    ]


def test_with_the_extra_an_import_loads_none_of_it() -> None:
    """They take half a second to load, and most programs that import surefoot need none."""
    assert run(LOADED) == "[]\n"
