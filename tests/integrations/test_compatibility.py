"""B1, B3, B5. What the pages say of nine clients is what their run showed, and the code of it."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest

from clients.cells import CELLS, SMOKE
from clients.environments import requirements
from clients.expected import EXPECTED, OTHERWISE, judged
from clients.page import PAGE, RESULTS, rendered
from clients.roster import ROSTER, Client
from support.examples import examples_in

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "docs" / "how-to" / "frameworks.md"]
KEPT: Final[list[dict[str, Any]]] = json.loads(RESULTS.read_text("utf-8"))
OURS: Final[list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "dependencies"
]
ALL: Final = [cell.key for cell in CELLS]

clients = pytest.mark.parametrize("client", ROSTER, ids=lambda one: one.key)


def kept_of(client: Client) -> list[dict[str, Any]]:
    """The results of one client."""
    (one,) = (row for row in KEPT if row["client"] == client.key)
    return one["cells"]


def test_the_page_is_rendered_from_the_results_that_are_kept() -> None:
    assert PAGE.read_text("utf-8") == rendered(KEPT)


def test_every_client_has_every_cell_with_surefoot_and_without() -> None:
    assert [row["client"] for row in KEPT] == [one.key for one in ROSTER]
    for row in KEPT:
        assert sorted((cell["cell"], cell["surefoot"]) for cell in row["cells"]) == sorted(
            (key, with_surefoot) for key in ALL for with_surefoot in (False, True)
        )


@clients
def test_what_is_kept_is_what_is_promised(client: Client) -> None:
    """B1, B5. Every cell with surefoot is as the table says."""
    assert judged(client.key, kept_of(client), ALL) == []


@clients
def test_a_payment_runs_once(client: Client) -> None:
    """B3. With the client's retries as they are and at three, and a model that calls again."""
    payments = {cell.key for cell in CELLS if cell.tool == "refund"}
    ran = {one["cell"]: one["executions"] for one in kept_of(client) if one["surefoot"]}
    assert {key: ran[key] for key in payments} == dict.fromkeys(payments, 1)


def test_without_surefoot_payments_run_four_times_and_sixteen() -> None:
    """The control: a count of one says something."""
    ran = {
        (row["client"], one["cell"]): one["executions"]
        for row in KEPT
        for one in row["cells"]
        if not one["surefoot"]
    }
    assert ran["openai-agents", "payment-again"] == 4
    assert ran["adk", "payment-again"] == 4
    assert ran["mcp2", "payment-slow"] == 4
    assert ran["langchain", "payment-again"] == 16
    assert ran["openai-agents", "sessions-resume"] == 16


@pytest.mark.parametrize(
    ("change", "value", "said"),
    [
        ("executions", 2, "how often the tool ran: expected 1, seen 2"),
        ("sends", 2, "how often it was sent: expected 1, seen 2"),
        ("neighbour", False, "whether the call beside it was answered: expected True, seen False"),
        ("later", False, "whether a later call was answered: expected True, seen False"),
        ("hung", True, "whether it hung: expected False, seen True"),
        ("raised", ["run: E: e"], "what was raised: expected [], seen ['run: E: e']"),
        ("read", [], "what was read: expected"),
        ("read", ["Please try again."], "what was read: expected"),
        ("records", [], "the attempts in the run: expected ['unanswered'], seen []"),
    ],
)
def test_a_cell_that_differs_is_named_with_what_was_expected_and_seen(
    change: str, value: object, said: str
) -> None:
    rows = deepcopy(kept_of(ROSTER[0]))
    for row in rows:
        if row["cell"] == "reset-after" and row["surefoot"]:
            row[change] = value
    (wrong,) = judged("mcp2", rows, ALL)
    assert wrong.startswith(f"mcp2, reset-after: {said}")


def test_a_cell_without_a_result_is_named() -> None:
    assert judged("mcp2", [], ["429"]) == ["mcp2, 429: expected a result, seen none"]


def test_the_tables_name_cells_and_clients_that_there_are() -> None:
    assert set(EXPECTED) == set(ALL)
    assert set(SMOKE) < set(ALL)
    assert {key for key, _ in OTHERWISE} <= {one.key for one in ROSTER}
    assert {cell for _, cell in OTHERWISE} <= set(ALL)


@clients
def test_the_pinned_list_holds_versions_and_no_place(client: Client) -> None:
    lines = [
        line
        for line in requirements(client).read_text("utf-8").splitlines()
        if line and not line.lstrip().startswith("#")
    ]
    assert [
        line for line in lines if not re.fullmatch(r"[\w.\[\],-]+==[\w.+!]+( ; .+)?", line)
    ] == []
    pinned = {line.partition("==")[0].partition("[")[0] for line in lines}
    assert {re.split(r"[<>=]", line)[0] for line in OURS} <= pinned
    (row,) = (one for one in KEPT if one["client"] == client.key)
    assert f"{client.package}=={row['version']}" in lines
    assert f"mcp=={row['mcp']}" in lines


def expressions(tree: ast.AST) -> Iterator[str]:
    """Every expression of a program, in one spelling."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            yield ast.dump(node)


class WithoutOptions(ast.NodeTransformer):
    """Takes `**options` away, which is how a driver sets a timeout."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [one for one in node.keywords if one.arg is not None]
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key]
        node.keys, node.values = [key for key, _ in pairs], [value for _, value in pairs]
        return self.generic_visit(node)


def adopting(client: Client) -> list[str]:
    """The expressions with which the driver of a client adopts surefoot."""
    path = ROOT / "tools" / f"{client.module.replace('.', '/')}.py"
    tree = WithoutOptions().visit(ast.parse(path.read_text("utf-8")))
    (function,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "adopted"
    )
    found: list[str] = []
    for node in ast.walk(function):
        match node:
            case ast.withitem(context_expr=line) | ast.Return(value=ast.expr() as line):
                found.append(ast.dump(line))
            case _:
                pass
    return found


@clients
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_line_on_the_page_is_the_line_that_the_driver_runs(page: Path, client: Client) -> None:
    """Adopting surefoot is one line, and it is the one that was tried."""
    shown: set[str] = set()
    for example in examples_in(page):
        shown.update(expressions(ast.parse(f"async def program():\n{indented(example.code)}")))
    adopted = adopting(client)
    assert adopted
    assert [line for line in adopted if line not in shown] == []


def indented(code: str) -> str:
    """The code as the body of a function."""
    return "".join(f"    {line}" for line in code.splitlines(keepends=True))


def test_another_line_would_be_found_out() -> None:
    shown = set(expressions(ast.parse("MCPToolset(url, http_client=billing.http_client())")))
    assert not set(adopting(ROSTER[3])) & shown
