"""The pages of the dashboard: each is drawn from its address, and shows what others wrote as text."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import polars as pl
import pytest

from tests.conftest import Folder
from tests.pipelines.test_run import evaluate
from tests.publish.dashboard.client import Client
from tests.publish.dashboard.conftest import ADDRESS, MARKUP
from tests.publish.report.pages import Page
from touchstone.errors import TouchstoneError
from touchstone.publish.dashboard.lists import leaderboard
from touchstone.publish.dashboard.pages import dashboard
from touchstone.publish.dashboard.selection import Filters, RunTables, Selection
from touchstone.publish.ruling import COMMENTS, read_comments, write_comment

TOKEN = "token-of-the-forms"
ATTEMPT = {"of_model": "m", "of_tier": "T0", "problem": MARKUP, "attempt": "3"}
KEY = ("m", "T0", MARKUP, "3")


@pytest.fixture
def client(filterable: Folder) -> Client:
    return Client(dashboard(filterable.output, TOKEN))


def opened(client: Client, path: str, **query: str | list[str]) -> Page:
    answer = client.get(path, **query)
    assert answer.status == 200
    return Page(answer.text)


def rows_that_open(page: Page) -> list[str]:
    """The addresses that the rows of the table lead to."""
    cells = (each["href"] for each in page.all("a") if str(each["href"]).startswith(("/problems?", "/attempt")))
    return [str(link) for link in cells if "of_model" in str(link)]


def test_every_row_leads_on_and_its_address_has_the_filters(client: Client) -> None:
    first = rows_that_open(opened(client, "/", suite="web", tier="T0"))
    assert len(first) == 2
    path, query = urlsplit(first[0])[2:4]
    assert path == "/problems" and ("suite", "web") in parse_qsl(query) and ("tier", "T0") in parse_qsl(query)
    problems = Page(client.get(first[0]).text)
    attempts = Page(client.get(rows_that_open(problems)[-1]).text)
    assert "suite=web" in rows_that_open(attempts)[-1]
    assert "Diff of the fix" in client.get(rows_that_open(attempts)[-1]).text


def test_a_problem_of_the_audit_leads_to_the_attempts_of_all_models_at_it(client: Client) -> None:
    page = opened(client, "/audit", suite="web")
    assert "The problems cannot be judged: fewer than six models attempted them." in page.text
    links = [str(each["href"]) for each in page.all("a") if str(each["href"]).startswith("/attempts?")]
    attempts = Page(client.get(next(link for link in links if "problem=p1&" in f"{link}&")).text)
    assert "Attempts at p1" in attempts.text and {"m", "one-suite"} <= set(attempts.cells)
    assert len(rows_that_open(attempts)) == 16
    assert client.get("/save/problem_audit.csv", suite="web").text.startswith("oid,tier,verdict,")


def test_figures_are_those_of_the_filters(client: Client, filterable: Folder) -> None:
    page = opened(client, "/", suite="web", slice="difficulty", value="=hard")
    wanted = leaderboard(Selection(RunTables(filterable.output), Filters((), (), ("web",), "difficulty", ("hard",))))
    assert f"{wanted['pass_at_1'][0]:.3f}" in page.cells and "n = 4 problems, 64 attempts, 4 rows" in page.text


def test_headers_are_words_with_the_description_of_the_column(client: Client) -> None:
    page = opened(client, "/")
    assert {"pass@1", "CI from", "cost of pass", "total cost"} <= set(page.cells) and "ci_low" not in page.text
    titles = [each["title"] for each in page.all("a") if each.get("title")]
    assert "Chance that at least one of 3 attempts passes." in titles
    assert all(str(title) in page.text for title in titles), "without a mouse, too"


def test_tables_are_sorted_and_searched_by_the_address(client: Client) -> None:
    by_name = opened(client, "/problems", of_model="m", of_tier="T0", sort="-oid")
    names = [cell for cell in by_name.cells if re.fullmatch(r"p\d+", cell)]
    assert names == sorted(names, reverse=True) and len(names) == 12
    assert [each["aria-sort"] for each in by_name.all("th") if each.get("aria-sort")] == ["descending"]
    found = opened(client, "/problems", of_model="m", of_tier="T0", find="ONERROR")
    assert "1 row of 16" in found.text and MARKUP in found.cells


@pytest.mark.parametrize(("outcome", "wanted"), [("passed", True), ("failed", False), ("undecided", None)])
def test_attempts_are_filtered_by_outcome(
    client: Client, filterable: Folder, outcome: str, wanted: bool | None
) -> None:
    ended = RunTables(filterable.output).scan("outcomes").filter(pl.col("passed").eq_missing(wanted)).collect()
    assert f"{ended.height} rows" in opened(client, "/attempts", outcome=outcome).text
    one = opened(client, "/attempts", of_model="m", of_tier="T0", problem="p3", outcome=outcome)
    assert re.search(rf"\b{ended.filter(model='m', tier='T0', oid='p3').height} rows?\b", one.text)


def test_attempts_are_filtered_by_how_they_failed(client: Client, filterable: Folder) -> None:
    page = opened(client, "/attempts")
    kinds = [str(each["value"]) for each in page.all("input") if each.get("name") == "failure"]
    run = RunTables(filterable.output)
    assert kinds and "passed" not in kinds
    every = [int(re.findall(r"(\d+) rows?", opened(client, "/attempts", failure=kind).text)[-1]) for kind in kinds]
    assert sum(every) == run.scan("outcomes").filter(~pl.col("passed").fill_null(False)).collect().height


@pytest.mark.parametrize("path", ["/", "/problems", "/attempts", "/attempt", "/charts", "/compare", "/sql"])
def test_foreign_text_is_text_on_every_page(client: Client, path: str) -> None:
    hostile = {
        **ATTEMPT,
        "find": '"><script>alert(1)</script>',
        "sql": "</textarea><script>",
        "chart": "<b>",
        "run": "",
    }
    answer = client.get(path, **hostile)
    page = Page(answer.text)
    assert not page.scripts and not page.all("img") and not page.all("b") and "\u202e" not in answer.text
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    links = [str(each["href"]) for each in page.all("a")]
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links)
    assert ADDRESS not in links


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("/", {"run": "gone"}, "there is no run or snapshot 'gone'"),
        ("/attempt", ATTEMPT | {"attempt": "99"}, "there is no attempt '99'"),
        ("/attempt", ATTEMPT | {"other": "3"}, "there is no such other attempt"),
        ("/charts", {"chart": "gone"}, "this run has no chart 'gone'"),
        ("/sql", {"sql": "DROP TABLE attempts", "run_it": "yes"}, "only one SELECT is allowed"),
        ("/compare", {"before_model": "m"}, "choose a model on both sides"),
    ],
)
def test_what_cannot_be_shown_is_one_line(client: Client, path: str, query: dict[str, str], message: str) -> None:
    assert message in opened(client, path, **query).text


@pytest.mark.services
def test_two_attempts_side_by_side(client: Client, own: Folder) -> None:
    page = opened(client, "/attempt", **ATTEMPT)
    others = [str(each["value"]) for each in page.all("option") if str(each.get("value")).startswith("[")]
    assert json.dumps(["m", "T1", "1"]) in others and json.dumps(["m", "T0", "3"]) not in others
    shown = opened(client, "/attempt", **ATTEMPT, other=others[0])
    assert "The two attempts have neither fixes nor responses to compare." in shown.text
    fixes = own.root / "fixes" / "m_fixes.csv"
    rows = pl.read_csv(fixes, infer_schema=False)
    # The third attempt differs from the others in one line.
    code = pl.when(iteration_id="3").then(pl.lit("a = 1\nif x < y:")).otherwise(pl.lit("a = 1\n<b>"))
    rows.with_columns(fixed_code=code).write_csv(fixes)
    evaluate(own)
    page = opened(Client(dashboard(own.output, TOKEN)), "/attempt", **ATTEMPT, other=json.dumps(["m", "T1", "1"]))
    kinds = [tag for tag, _ in page.elements if tag in ("del", "ins")]
    assert kinds == ["del", "ins"] and {"a = 1", "if x < y:", "<b>"} <= set(page.cells) and not page.all("b")


def test_sql_lists_the_tables_and_a_link_from_elsewhere_only_shows_the_query(client: Client) -> None:
    query = {"sql": "SELECT 6 * 7 AS answer", "run_it": "yes"}
    page = opened(client, "/sql", **query)
    assert "42" in page.cells and "answer" in page.cells
    assert "a row per model, tier and k" in page.text and "problem_frontier" in page.text
    foreign = client.get("/sql", {"sec-fetch-site": "cross-site"}, **query)
    assert "SELECT 6 * 7 AS answer" in foreign.text and "42" not in Page(foreign.text).cells


def test_rows_and_charts_can_be_saved(client: Client) -> None:
    page = opened(client, "/problems", of_model="m", of_tier="T0", suite="web")
    links = [str(each["href"]) for each in page.all("a") if str(each["href"]).startswith("/save/")]
    saved = client.get(links[0])
    assert saved.headers["content-disposition"] == 'attachment; filename="problems.csv"'
    assert saved.text.count("\n") == 9 and "\n'=cmd()," in saved.text
    assert client.get("/save/chart.svg").text.startswith("<svg")
    assert client.get("/save/leaderboard.svg").status == client.get("/save/..").status == 404


# Comments


@pytest.fixture
def own(filterable: Folder, tmp_path: Path) -> Folder:
    """Results that a test may write to."""
    return Folder(Path(shutil.copytree(filterable.root, tmp_path / "copy", symlinks=True)))


def posted(client: Client, **fields: str) -> int:
    return client.post("/comment", ATTEMPT, **{"token": TOKEN, "before": "", **fields}).status


def test_a_comment_is_text_beside_the_results_and_outlives_the_next_run(own: Folder) -> None:
    client = Client(dashboard(own.output, TOKEN))
    text = "<script>alert(1)</script>\r\nsee \u202eline 2"
    answer = client.post("/comment", ATTEMPT, token=TOKEN, before="", text=text)
    assert answer.status == 303 and answer.headers["location"].startswith("/attempt?of_model=m&")
    assert evaluate(own).failures == []
    page = opened(client, "/attempt", **ATTEMPT)
    assert "<script>alert(1)</script>\nsee \\u202eline 2" in page.text and not page.scripts
    assert any(
        cell.startswith("<script>")
        for cell in opened(client, "/attempts", outcome=["passed", "failed", "undecided"]).cells
    )
    mark = read_comments(own.output)[KEY].mark
    assert posted(client, text="other") == 409, "somebody else wrote meanwhile"
    assert posted(client, text=" ", before=mark) == 303 and read_comments(own.output) == {}


def test_only_a_form_of_the_dashboard_may_comment_and_only_on_an_attempt(own: Folder) -> None:
    client = Client(dashboard(own.output, TOKEN))
    assert posted(client, text="x", token="guess") == 403
    assert posted(client, text="x" * 10_001) == 409 and posted(client, text="x" * 300_000) == 413
    assert client.get("/comment").status == 405
    nowhere = client.post("/comment", ATTEMPT | {"attempt": "99"}, token=TOKEN, text="x")
    assert nowhere.status == 409 and not (own.output / COMMENTS).exists()


@pytest.mark.services
def test_a_ruling_is_written_beside_the_inputs_and_the_next_run_counts_it(own: Folder) -> None:
    client, file = Client(dashboard(own.output, TOKEN)), own.root / "fixes" / "rulings.jsonl"
    before = opened(client, "/attempt", **ATTEMPT)
    assert "Nobody ruled on this attempt" in before.text
    sha = next(str(each["value"]) for each in before.all("input") if each.get("name") == "fix_sha")
    form = {"token": TOKEN, "ruling": "undecided", "reason": "<b>odd</b>", "by": "R. Li", "fix_sha": sha}
    assert client.post("/rule", ATTEMPT, **form | {"token": "guess"}).status == 403
    assert client.post("/rule", ATTEMPT, **form | {"reason": " "}).status == 409
    assert client.post("/rule", ATTEMPT, **form | {"ruling": "maybe"}).status == 409
    assert client.post("/rule", ATTEMPT, **form | {"fix_sha": "another"}).status == 409
    assert client.get("/rule", **form).status == 405 and not file.exists()
    answer = client.post("/rule", ATTEMPT, **form)
    assert answer.status == 303 and answer.headers["location"].endswith("#rule")
    pending = opened(client, "/attempt", **ATTEMPT)
    assert "undecided: <b>odd</b>" in pending.text and "the next run applies it" in pending.text
    assert evaluate(own).failures == []
    page = opened(client, "/attempt", **ATTEMPT)
    assert "undecided by ruling (measured: " in page.text and "the next run applies it" not in page.text


def test_where_rulings_cannot_be_written_there_is_no_form(own: Folder) -> None:
    (own.output / ".store" / "rulings_file").write_text("../nowhere/rulings.jsonl")
    page = opened(Client(dashboard(own.output, TOKEN)), "/attempt", **ATTEMPT)
    assert "Rule on this attempt" not in page.text


@pytest.mark.parametrize(
    ("damage", "message"), [("[{", "cannot be read .*; correct it or move it away"), (None, "by a link")]
)
def test_a_file_of_comments_that_is_damaged_or_a_link_is_named_and_kept(
    tmp_path: Path, damage: str | None, message: str
) -> None:
    folder, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.write_text("[]")
    file = folder / COMMENTS
    file.symlink_to(elsewhere) if damage is None else file.write_text(damage)
    before = file.read_bytes()
    with pytest.raises(TouchstoneError, match=rf"comments.json: .*{message}"):
        write_comment(folder, KEY, "x", before="", fix_sha=None)
    assert file.read_bytes() == before
