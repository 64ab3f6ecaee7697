"""Every example of the README and the docs runs as printed, against a gateway that throttles.

The one thing that is changed is the address. The first use of a tool is refused once, so that an
example which forgot what surefoot is for would fail.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.examples import PLACEHOLDER, Example, examples_in
from support.programs import Ended, Programs
from surefoot.testing import FaultyGateway, Throttle

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [example for page in PAGES for example in examples_in(page)]

LINK = re.compile(r"\[[^\]]*\]\((?!https?://|#|mailto:)([^)#\s]+)")

SAMPLE = """
# A page

```python
print("plain")
```

```text
plain
```

<!-- needs: no_such_framework, json -->
```python
import no_such_framework
```

<!-- fragment -->

```python
async with client: ...
```

```sh
make demo
```
"""


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    """Runs each program by itself, with warnings as errors and an end."""
    with Programs() as starts:
        yield starts


def run(programs: Programs, code: str, folder: Path) -> Ended:
    """Run one program of this text."""
    program = folder / "example.py"
    program.write_text(code, "utf-8")
    return programs.run(program)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_runs_as_printed(example: Example, programs: Programs, tmp_path: Path) -> None:
    missing = [name for name in example.needs if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if example.fragment:
        compile(f"async def fragment():\n{indented(example.code)}", str(example), "exec")
        return
    with FaultyGateway() as gateway:
        gateway.script("tools/call", Throttle(retry_after=0))
        done = run(programs, example.code.replace(PLACEHOLDER, gateway.url), tmp_path)
        assert done.stderr == ""
        assert done.returncode == 0
        if "anyio.run(" in example.code and PLACEHOLDER in example.code:
            assert gateway.journal, "the example names the gateway and never reaches it"
    if example.prints is not None:
        assert done.stdout == example.prints


def indented(code: str) -> str:
    """The code as the body of a function."""
    return "".join(f"    {line}" for line in code.splitlines(keepends=True))


def test_the_readme_has_examples() -> None:
    assert any(example.page == ROOT / "README.md" for example in EXAMPLES)


def test_blocks_are_taken_from_a_page_as_they_stand(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SAMPLE, "utf-8")
    plain, needy, fragment = examples_in(page)
    assert (plain.code, plain.prints, plain.line) == ('print("plain")\n', "plain\n", 5)
    assert needy.needs == ("no_such_framework", "json")
    assert fragment.fragment
    assert fragment.prints is None


def test_a_mark_without_a_meaning_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SAMPLE.replace("fragment", "skip"), "utf-8")
    with pytest.raises(ValueError, match="marked needs or fragment"):
        examples_in(page)


def test_an_example_that_warns_or_fails_is_found_out(programs: Programs, tmp_path: Path) -> None:
    done = run(programs, "print(__name__)", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "__main__\n", "")
    assert run(programs, "import warnings; warnings.warn('old')", tmp_path).returncode == 1
    assert run(programs, "raise SystemExit(3)", tmp_path).returncode == 3
    assert "unclosed file" in run(programs, "left = open(__file__)", tmp_path).stderr


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("[CS]*.md")], ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [to for to in LINK.findall(text) if not (page.parent / to).exists()] == []
