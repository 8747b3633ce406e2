"""The pages of the dashboard, as a Starlette app. Each is drawn from its address alone and needs no script.

`/` the leaderboard, `/problems` of one of its rows, `/attempts` at one of those or of all models, `/attempt` one of
them or two side by side, `/failures` why they fail, `/factors` what a setting of attempts changes, `/audit` whether the
problems can be trusted, `/charts`, `/compare` two runs or models, `/sql`. `/save/NAME.FORMAT` has the rows of a page as
a file, and `/comment` and `/rule` take what somebody says about an attempt.
"""

import hmac
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import jinja2
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from touchstone.errors import TouchstoneError
from touchstone.ingest.attempts import sort_attempts
from touchstone.ingest.rulings import MOST_CHARACTERS, read_rulings
from touchstone.locations import queries_page
from touchstone.publish.attempt_detail import TEXTS, AttemptDetail
from touchstone.publish.audit import problem_sentences
from touchstone.publish.charts import CHARTS, spec
from touchstone.publish.charts.rendering import svg
from touchstone.publish.charts.vega import dark_style
from touchstone.publish.csv_files import csv_text
from touchstone.publish.dashboard import lists
from touchstone.publish.dashboard.lists import Side, SideBySide, side_by_side
from touchstone.publish.dashboard.selection import Address, RunTables, Selection, open_run, run_folders, value_text
from touchstone.publish.dashboard.texts import attempt_title, cell, compared_text, shown_table, side_by_side_lines
from touchstone.publish.query import QueryLimits, run_query
from touchstone.publish.result_formats import format_result, terminal_cells
from touchstone.publish.result_tables import effect_words
from touchstone.publish.ruling import is_writable, read_comments, rule_on_attempts, rulings_file, write_comment
from touchstone.publish.views import table_files
from touchstone.tables import TABLES
from touchstone.tables.presentation import interval, p_value, signed
from touchstone.text import counted, counted_of, visible, visible_lines
from touchstone.vocabulary import RULINGS

_PACKAGE = "touchstone.publish.dashboard"
_VIEWS = {
    "/": "Results",
    "/attempts": "Attempts",
    "/failures": "Failures",
    "/factors": "Factors",
    "/audit": "Problem audit",
    "/charts": "Charts",
    "/compare": "Side by side",
    "/sql": "SQL",
}
_READ_ERRORS = (TouchstoneError, OSError, pl.exceptions.PolarsError)
_MOST_BODY = 200_000
_COMMENT_SHOWN = 80
# Columns of the page of an attempt before its texts, and of its flags.
_MEASURED = (
    *("suite", "run_id", "classification", "input_tokens", "output_tokens", "cost_usd", "duration_seconds"),
    *("latency_ms", "validator", "validator_version", "fidelity", "sandbox", "validation_seconds", "fix_sha"),
)
_OF_FLAG = ("rule", "severity", "place", "evidence")


class Choice(NamedTuple):
    """A value of a filter: the parameter, what is shown, and whether it is chosen."""

    value: str
    words: str
    chosen: bool


class View:
    """The data that an address asks for, read when a page needs it."""

    # How many attempts there are; set with the rows of all models.
    attempt_count = 0

    def __init__(self, data: Path, address: Address) -> None:
        self.data, self.address = data, address
        self._rows: dict[str, Any] = {}

    @cached_property
    def folders(self) -> dict[str, Path]:
        return run_folders(self.data)

    @cached_property
    def run(self) -> RunTables:
        name = self.address.get("run") or next(iter(self.folders))
        if name not in self.folders:
            raise TouchstoneError(f"there is no run or snapshot '{name}'; choose another")
        return open_run(self.folders[name])

    @cached_property
    def selection(self) -> Selection:
        return Selection(self.run, self.address.filters)

    @property
    def entry(self) -> tuple[str, str]:
        """The model and tier that are open."""
        return self.address.get("of_model"), self.address.get("of_tier")

    @property
    def ended(self) -> dict[str, tuple[str, ...]]:
        return {
            "outcomes": self.address.all("outcome"),
            "failures": self.address.all("failure"),
            "modes": self.address.all("mode"),
        }

    def rows(self, name: str) -> Any:
        """The rows of a page, by the name of the file that they are saved as; made once."""
        if name not in self._rows:
            self._rows[name] = _ROWS[name](self)
        return self._rows[name]

    @cached_property
    def compared(self) -> SideBySide:
        before, after = (
            Side(
                open_run(self.folders.get(self.address.get(f"{side}_run"), fallback)),
                self.address.get(f"{side}_model") or None,
            )
            for side, fallback in (("before", list(self.folders.values())[-1]), ("after", self.data))
        )
        return side_by_side(before, after, self.address.filters)

    # Its filters

    @cached_property
    def filters(self) -> list[tuple[str, str, list[Choice]]]:
        """Every filter: parameter, label, and its choices."""
        if self.address.path in ("/sql", "/attempt"):
            return []
        column = self.address.get("slice")
        sliced = [(value_text(value), value) for value in self.run.slices.get(column, ())]
        named: list[tuple[str, str, Iterable[tuple[str, str | None]]]] = [
            ("model", "Models", _same(self.run.models)),
            ("tier", "Tiers", _same(self.run.tiers)),
            ("suite", "Suites", _same(self.run.suites)),
            ("value", f"Values of {column}", sliced),
        ]
        if self.address.path == "/attempts":
            named += [
                ("outcome", "Outcomes", _same(lists.OUTCOMES)),
                ("failure", "Failures", _same(lists.failures_of(self.run))),
                ("mode", "Reasons", _same(lists.modes_of(self.run))),
            ]
        return [(name, label, self._choices(name, values)) for name, label, values in named]

    def _choices(self, name: str, values: Iterable[tuple[str, str | None]]) -> list[Choice]:
        chosen = self.address.all(name)
        return [
            Choice(each, "(no value)" if words is None else words or "(empty)", each in chosen)
            for each, words in values
        ]


def _same(values: Iterable[str]) -> list[tuple[str, str | None]]:
    return [(value, value) for value in values]


# The pages


def _listing(
    view: View,
    name: str,
    heading: str,
    hint: str = "",
    link: Callable[[dict[str, Any]], str] = lambda row: "",
    **more: Any,
) -> dict[str, Any]:
    """A page with one table, whose rows lead further and can be saved."""
    return {
        "heading": heading,
        "hint": hint,
        "table": shown_table(view.rows(name), view.address, heading, link),
        "save": name,
        **more,
    }


def _leaderboard(view: View) -> dict[str, Any]:
    def link(row: dict[str, Any]) -> str:
        return view.address.link("/problems", of_model=row["model"], of_tier=row["tier"])

    return _listing(view, "leaderboard", "Leaderboard", "Choose a row to see its problems.", link)


def _problems(view: View) -> dict[str, Any]:
    model, tier = view.entry

    def link(row: dict[str, Any]) -> str:
        return view.address.link("/attempts", of_model=model, of_tier=tier, problem=row["oid"])

    hint = "The hardest first. Choose one to see its attempts."
    return _listing(view, "problems", f"Problems of {model}, tier {tier}", hint, link)


def _attempts(view: View) -> dict[str, Any]:
    (model, tier), oid = view.entry, view.address.get("problem")

    def link(row: dict[str, Any]) -> str:
        of = (model, tier, oid) if model else (row["model"], row["tier"], row["oid"])
        key = dict(zip(("of_model", "of_tier", "problem"), of, strict=True))
        return view.address.link("/attempt", **key, attempt=row["iteration_id"])

    whose = f"Attempts of {model}, tier {tier}," if model else "Attempts"
    found = _listing(view, "attempts", f"{whose} at {oid}" if oid else whose, "Choose one to read it.", link)
    shown = view.rows("attempts").height
    if not model and view.attempt_count > shown:
        found["hint"] = f"The first {counted_of(shown, view.attempt_count, 'attempt')}. {found['hint']}"
    return found


def _attempt_rows(view: View) -> pl.DataFrame:
    """The attempts of the model that is open at the problem, or of all models, with the comments on them."""
    model, tier = view.entry
    oid = view.address.get("problem")
    if model:
        rows = lists.attempt_list(view.selection, model, tier, oid, **view.ended)
        keys = [(model, tier, oid, attempt) for attempt in rows["iteration_id"]]
    else:
        rows, view.attempt_count = lists.all_attempts(view.selection, oid, **view.ended)
        keys = list(rows.select("model", "tier", "oid", "iteration_id").iter_rows()) if rows.height else []
    known = read_comments(view.data)
    texts = [known[key].text[:_COMMENT_SHOWN] if key in known else None for key in keys]
    return rows.with_columns(pl.Series("comment", texts, pl.String)) if any(texts) else rows


def _attempt(view: View) -> dict[str, Any]:
    detail = _opened(view)
    oid, key = detail.oid, (detail.model, detail.tier, detail.oid, detail.iteration_id)
    others = [
        Choice(json.dumps(each), "{}, {}, attempt {}".format(*each), json.dumps(each) == view.address.get("other"))
        for each in _others(view, oid)
        if (each[0], each[1], oid, each[2]) != key
    ]
    found: dict[str, Any] = {
        "heading": attempt_title(detail),
        "attempt": Markup(attempt_page(detail)),
        "comment": read_comments(view.data).get(key),
        "fix_sha": detail.fix_sha,
        "rulings": [row | {"pending": False} for row in detail.rulings] + _pending(view.data, detail),
        "rulings_file": rulings_file(view.data).name if is_writable(view.data) else "",
        "ruling_words": RULINGS,
        "others": others,
        "key": key,
    }
    return found | (_diff(view, detail) if view.address.get("other") else {})


def attempt_page(detail: AttemptDetail) -> str:
    """One attempt as HTML. A text that is not at hand says why."""
    tests = [(test.status, test.test, " ".join(test.message.split("\n"))) for test in detail.tests]
    failed = sum(status == "failed" for status, _, _ in tests)
    return (
        _environment()
        .get_template("attempt.html.j2")
        .render(
            detail=detail,
            measured={lists.in_words(name): cell(getattr(detail, name)) for name in _MEASURED},
            flags=[tuple(row[name] for name in _OF_FLAG) for row in detail.flags],
            flag_columns=_OF_FLAG,
            tests=tests,
            test_counts=f"{len(tests):,} tests, {failed:,} failed",
            titles=TEXTS,
            line_kinds={"+": "added", "-": "removed", "@": "place"},
        )
    )


def _opened(view: View) -> AttemptDetail:
    address = view.address
    return lists.opened_attempt(view.selection, *view.entry, address.get("problem"), address.get("attempt"))


def _pending(data: Path, detail: AttemptDetail) -> list[dict[str, Any]]:
    """The rulings about an attempt that the published run has not seen."""
    if not is_writable(data):
        return []
    known = {row["line"] for row in detail.rulings}
    key = (detail.model, detail.tier, detail.oid, detail.iteration_id)
    return [
        vars(ruling) | {"line": line, "pending": True}
        for line, ruling in read_rulings(rulings_file(data)).rulings.items()
        if line not in known and (ruling.model, ruling.tier, ruling.problem, ruling.attempt) == key
    ]


def _others(view: View, oid: str) -> list[tuple[str, str, str]]:
    """Model, tier and id of all attempts at a problem."""
    rows = view.run.scan("attempt_scores").filter(pl.col("oid") == oid).select("model", "tier", "oid", "iteration_id")
    return list(sort_attempts(rows, "model").drop("oid").collect().iter_rows())


def _diff(view: View, detail: Any) -> dict[str, Any]:
    try:
        model, tier, attempt = map(str, json.loads(view.address.get("other")))
    except (ValueError, TypeError):
        raise TouchstoneError("there is no such other attempt; choose one of the list") from None
    other = lists.opened_attempt(view.selection, model, tier, detail.oid, attempt)
    left, right, words = compared_text(detail, other)
    if not words:
        return {"message": "The two attempts have neither fixes nor responses to compare."}
    titles = [f"{each.model}, {each.tier}: {attempt_title(each)}" for each in (detail, other)]
    return {"diff": list(side_by_side_lines(left, right)), "titles": titles, "diff_words": words}


def _audit(view: View) -> dict[str, Any]:
    """Every problem with its verdict; one leads to the attempts at it."""
    audit, board = (view.selection.frame(table) for table in ("problem_audit", "audited_leaderboard"))
    return _listing(
        view,
        "problem_audit",
        "Can the problems be trusted?",
        "The most suspect first. Choose one to see the attempts at it.",
        lambda row: view.address.link("/attempts", problem=row["oid"]),
        verdicts=problem_sentences(audit, board.collect()),
    )


def _failures(view: View) -> dict[str, Any]:
    """Why attempts fail; a reason leads to the attempts."""
    heading = "Why do they fail?"
    if view.rows("failures").is_empty():
        return {"heading": heading, "message": "No failed attempt here has diagnostics or an error: why is not known."}

    def link(row: dict[str, Any]) -> str:
        return view.address.link("/attempts", mode=row["fingerprint"])

    return _listing(view, "failures", heading, "Choose a reason to see its attempts.", link)


def _factors(view: View) -> dict[str, Any]:
    """pass@1 by level, and in a line each what a level changes."""
    effects = [
        f"{row['model']}, {row['tier']}: {effect_words(row)}: {signed(row['difference'])} {interval(row, '')}, "
        f"adjusted p {p_value(row['p_adjusted'])}, {counted(row['problems'], 'problem')}"
        for row in view.selection.frame("factor_effects").collect().iter_rows(named=True)
    ]
    return _listing(view, "factors", "pass@1 by factor", verdicts=effects) | {"heading": "Factors"}


def _charts(view: View) -> dict[str, Any]:
    titles = {chart.title: name for name, chart in CHARTS.items() if view.run.has(chart.table)}
    name = view.address.get("chart") or next(iter(titles.values()), "")
    if name not in titles.values():
        raise TouchstoneError(f"this run has no chart '{name}'; choose another")
    choices = [Choice(each, title, each == name) for title, each in titles.items()]
    picture = Markup(chart_svg(view.selection, name).decode())
    return {"heading": "Charts", "charts": choices, "picture": picture, "save": "chart"}


def _compare(view: View) -> dict[str, Any]:
    folders = list(view.folders)
    sides = []
    for side, words, first in (("before", "Baseline", folders[-1]), ("after", "Current", folders[0])):
        run, model = view.address.get(f"{side}_run") or first, view.address.get(f"{side}_model")
        models = [("", "all models"), *((name, name) for name in view.run.models)]
        sides += [
            (f"{side}_run", f"{words} run", [Choice(name, name, name == run) for name in folders]),
            (f"{side}_model", f"{words} model", [Choice(name, label, name == model) for name, label in models]),
        ]
    found: dict[str, Any] = {"heading": "Side by side", "sides": sides}
    if not any(view.address.get(name) for name, _, _ in sides):
        return found | {"hint": "Choose two runs, or two models, and compare."}
    try:
        result = view.compared
    except _READ_ERRORS as error:
        return found | {"message": _reason(error)}
    counts = ", ".join(f"{kind} {count:,}" for kind, count in result.counts.items())
    table = shown_table(result.cases, view.address, "Cases that changed") if result.cases.height else None
    said = {"verdicts": [*result.verdicts, *result.remarks], "hint": f"Cases: {counts}."}
    return found | said | {"table": table, "save": "changed_cases" if table else ""}


def _sql(view: View) -> dict[str, Any]:
    examples = example_queries()
    listed = [
        (name, TABLES[name].grain if name in TABLES else "", _columns(view.run, name))
        for name in table_files(view.run.tables)
    ]
    found = {"heading": "SQL", "examples": examples, "listed": listed, "sql": view.address.get("sql")}
    if not view.address.get("sql"):
        return found | {"sql": next(iter(examples.values()))}
    if not view.address.get("run_it"):
        return found
    try:
        frame = shown_rows(view.rows("query"))
    except _READ_ERRORS as error:
        return found | {"message": _reason(error)}
    return found | {"table": shown_table(frame, view.address, "Result", words=False), "save": "query"}


def _columns(run: RunTables, table: str) -> list[tuple[str, str]]:
    known = TABLES[table].descriptions if table in TABLES else {}
    return [(name, known.get(name, "")) for name in run.scan(table).collect_schema().names()]


_PAGES: dict[str, Callable[[View], dict[str, Any]]] = {
    "/": _leaderboard,
    "/problems": _problems,
    "/attempts": _attempts,
    "/attempt": _attempt,
    "/failures": _failures,
    "/factors": _factors,
    "/audit": _audit,
    "/charts": _charts,
    "/compare": _compare,
    "/sql": _sql,
}
_ROWS: dict[str, Callable[[View], Any]] = {
    "leaderboard": lambda view: lists.leaderboard(view.selection),
    "problems": lambda view: lists.problem_list(view.selection, *view.entry),
    "attempts": _attempt_rows,
    "failures": lambda view: lists.failure_list(view.selection),
    "factors": lambda view: view.selection.frame("factors").collect(),
    "problem_audit": lambda view: lists.audited_problems(view.selection),
    "changed_cases": lambda view: view.compared.cases,
    "query": lambda view: run_sql(view.run, view.address.get("sql")),
    "chart": lambda view: view.selection.frame(CHARTS[view.address.get("chart") or "leaderboard"].table).collect(),
}


def _reason(error: Exception) -> str:
    if isinstance(error, TouchstoneError):
        return str(error)
    return f"the tables cannot be read; if a run has replaced them, reload this page ({type(error).__name__})"


# The app


def dashboard(data: Path, form_token: str) -> Starlette:
    """The app on the results in a folder. `form_token` is in its forms, and what is posted must have it."""
    template = _environment().get_template("dashboard.html.j2")

    def page(request: Request) -> Response:
        address = Address(request.url.path, tuple(request.query_params.multi_items()))
        # A link from elsewhere shows a query; only the page itself runs it.
        if address.path == "/sql" and request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            address = Address(address.path, tuple(pair for pair in address.query if pair[0] != "run_it"))
        return HTMLResponse(_render(template, View(data, address), form_token))

    def save(request: Request) -> Response:
        name, _, form = request.path_params["file"].rpartition(".")
        view = View(data, Address("/save", tuple(request.query_params.multi_items())))
        kinds = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "svg": "image/svg+xml"}
        if name not in _ROWS or form not in kinds or (form == "svg") > (name == "chart"):
            return HTMLResponse("no such file", 404)
        try:
            if form == "svg":
                content = chart_svg(view.selection, view.address.get("chart") or "leaderboard")
            else:
                content = (csv_bytes if form == "csv" else parquet_bytes)(view.rows(name))
        except _READ_ERRORS as error:
            return Response(f"error: {_reason(error)}\n", 400, media_type="text/plain")
        headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
        return Response(content, media_type=kinds[form], headers=headers)

    async def posted(request: Request) -> Response:
        sent = b""
        async for part in request.stream():
            sent += part
            if len(sent) > _MOST_BODY:
                return Response("error: this is too long\n", 413, media_type="text/plain")
        fields = dict(parse_qsl(sent.decode("utf-8", "replace"), keep_blank_values=True))
        if not hmac.compare_digest(fields.get("token", "").encode(), form_token.encode()):
            return Response("refused: this form is not of this dashboard\n", 403, media_type="text/plain")
        name, query = request.url.path.removeprefix("/"), tuple(request.query_params.multi_items())
        return await run_in_threadpool(_save_posted, name, data, fields, query)

    routes = [Route(path, page) for path in _PAGES]
    forms = [Route(f"/{name}", posted, methods=["POST"]) for name in _FORMS]
    return Starlette(routes=[*routes, Route("/save/{file}", save), *forms])


def _save_posted(name: str, data: Path, fields: dict[str, str], query: Sequence[tuple[str, str]]) -> Response:
    """Save what a form on the page of an attempt says about it, and show that page again."""
    address = Address("/attempt", tuple(query))
    view = View(data, address)
    try:
        _FORMS[name](data, _opened(view), fields)
    except _READ_ERRORS as error:
        return Response(f"error: {_reason(error)}\n", 409, media_type="text/plain")
    return RedirectResponse(f"{address.but()}#{name}", 303)


def _save_comment(data: Path, about: AttemptDetail, fields: dict[str, str]) -> None:
    key, before = (about.model, about.tier, about.oid, about.iteration_id), fields.get("before", "")
    write_comment(data, key, fields.get("text", ""), before=before, fix_sha=about.fix_sha)


def _save_ruling(data: Path, about: AttemptDetail, fields: dict[str, str]) -> None:
    if fields.get("fix_sha", "") != (about.fix_sha or ""):
        raise TouchstoneError("the fix of this attempt has changed meanwhile; go back, reload and read it again")
    named = fields.get("ruling", ""), fields.get("reason", "").strip(), fields.get("by", "").strip()
    rule_on_attempts(data, about.model, about.tier, about.oid, about.iteration_id, *named)


_FORMS: dict[str, Callable[[Path, AttemptDetail, dict[str, str]], None]] = {
    "comment": _save_comment,
    "rule": _save_ruling,
}


def _render(template: jinja2.Template, view: View, form_token: str) -> str:
    found: dict[str, Any] = {}
    try:
        found = _PAGES[view.address.path](view)
        filters, runs = view.filters, view.folders
        summary = lists.summary_line(view.selection, view.rows("leaderboard"))
        views = {path: words for path, words in _VIEWS.items() if path != "/factors" or view.run.config.factors}
    except _READ_ERRORS as error:
        found = {"heading": "Nothing to show", "message": _reason(error)}
        filters, runs, summary, views = [], {}, "", _VIEWS
    return template.render(
        **found,
        folder=f"{view.data.parent.name}/{view.data.name}",
        address=view.address,
        views=views,
        runs=list(runs),
        filters=filters,
        slices=list(view.run.slices) if filters else (),
        summary=summary,
        form_token=form_token,
        most_characters=MOST_CHARACTERS,
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # Control characters of any text are shown as escapes.
        finalize=lambda value: (
            visible(value) if type(value) is str else "" if isinstance(value, jinja2.Undefined) else value
        ),
    )
    environment.filters["lines"] = lambda text: Markup(escape(visible_lines(text)))
    style = (files("touchstone.publish.report") / "templates" / "report.css").read_text(encoding="utf-8")
    own = (files(_PACKAGE) / "templates" / "dashboard.css").read_text(encoding="utf-8")
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{dark_style('.chart')}}}\n"
    environment.globals["style"] = Markup(style + own + dark)
    environment.globals["counted"] = counted
    return environment


def chart_svg(selection: Selection, name: str) -> bytes:
    """A chart of the selection as SVG, in the colours of paper."""
    chart = CHARTS[name]
    beside = {option: selection.frame(table) for option, table in chart.beside.items() if selection.run.has(table)}
    return svg(spec(name, selection.frame(chart.table), theme="light", **beside)).encode()


def csv_bytes(rows: pl.DataFrame | pa.Table) -> bytes:
    """The rows as `touchstone export` writes them; the result of a query as `touchstone sql` does.

    >>> csv_bytes(pl.DataFrame({"name": ["=cmd()"], "n": [1]}))
    b"name,n\\n'=cmd(),1\\n"
    """
    return (csv_text(rows.lazy()) if isinstance(rows, pl.DataFrame) else format_result(rows, "csv")).encode()


def parquet_bytes(rows: pl.DataFrame | pa.Table) -> bytes:
    """The rows with their types."""
    buffer = io.BytesIO()
    if isinstance(rows, pl.DataFrame):
        rows.write_parquet(buffer)
    else:
        pq.write_table(rows, buffer, compression="zstd")
    return buffer.getvalue()


LIMITS = QueryLimits(memory=2**30, seconds=30.0)


def run_sql(run: RunTables, sql: str) -> pa.Table:
    """The result of one SELECT; a TouchstoneError of one line if it is refused, too slow or too large."""
    return run_query(run.tables, sql, limits=LIMITS)


def shown_rows(result: pa.Table) -> pl.DataFrame:
    """The result as a frame to show; as text if it has columns that are neither numbers, text, truths nor times."""
    plain = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
    )
    times = (pa.types.is_date, pa.types.is_timestamp)
    if all(any(is_kind(field.type) for is_kind in (*plain, *times)) for field in result.schema):
        frame = pl.from_arrow(result)
        assert isinstance(frame, pl.DataFrame)
        return frame
    columns, rows, _ = terminal_cells(result, result.num_rows)
    return pl.DataFrame(rows, schema=[name for name, _ in columns], orient="row")


_EXAMPLE = re.compile(r"^## (?P<title>[^\n]+)\n(?:(?!^## ).)*?^```sql\n(?P<sql>.*?)^```", re.MULTILINE | re.DOTALL)


def example_queries() -> dict[str, str]:
    """SQL by title, in the order of the page.

    >>> next(iter(example_queries()))
    'Leaderboard'
    """
    page = queries_page().read_text(encoding="utf-8")
    return {found["title"].strip(): found["sql"].strip() for found in _EXAMPLE.finditer(page)}
