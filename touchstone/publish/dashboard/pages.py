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
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import jinja2
import polars as pl
import pyarrow as pa
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from touchstone.audit.problem_sentences import problem_sentences
from touchstone.errors import TouchstoneError
from touchstone.ingest.attempts import sort_attempts
from touchstone.ingest.rulings import MOST_CHARACTERS, read_rulings
from touchstone.locations import queries_page
from touchstone.publish.attempt_detail import AttemptDetail
from touchstone.publish.charts import CHARTS, spec
from touchstone.publish.charts.rendering import svg
from touchstone.publish.charts.theme import dark_style
from touchstone.publish.charts.vega import Spec
from touchstone.publish.csv_files import csv_text
from touchstone.publish.dashboard import comments, lists
from touchstone.publish.dashboard.address import Address, value_text
from touchstone.publish.dashboard.markup import (
    attempt_page,
    attempt_title,
    compared_text,
    shown_table,
    side_by_side_lines,
)
from touchstone.publish.dashboard.selection import RunTables, Selection, open_run, run_folders
from touchstone.publish.dashboard.side_by_side import Side, SideBySide, side_by_side
from touchstone.publish.figures import interval, p_value
from touchstone.publish.query import QueryLimits, run_query
from touchstone.publish.result_formats import format_result, terminal_cells
from touchstone.publish.result_tables import effect_words
from touchstone.publish.ruling import is_writable, rule_on_attempts, rulings_file
from touchstone.publish.table_columns import signed
from touchstone.publish.views import table_files
from touchstone.tables import TABLES
from touchstone.text import counted, counted_of, visible, visible_lines
from touchstone.vocabulary import RULINGS

if TYPE_CHECKING:
    import pyarrow as pa

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


class Choice(NamedTuple):
    """A value of a filter: the parameter, what is shown, and whether it is chosen."""

    value: str
    words: str
    chosen: bool


class View:
    """What an address asks for, read when a page needs it."""

    def __init__(self, data: Path, address: Address) -> None:
        self.data, self.address = data, address

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

    # The rows of the pages

    @cached_property
    def leaderboard(self) -> pl.DataFrame:
        return lists.leaderboard(self.selection)

    @cached_property
    def problems(self) -> pl.DataFrame:
        return lists.problem_list(self.selection, *self.entry)

    @cached_property
    def attempts(self) -> pl.DataFrame:
        """The attempts of the model that is open at the problem, or of all models, with the comments on them."""
        model, tier = self.entry
        oid = self.address.get("problem")
        if model:
            rows = lists.attempt_list(self.selection, model, tier, oid, **self.ended)
            keys = [(model, tier, oid, attempt) for attempt in rows["iteration_id"]]
        else:
            rows, self.attempt_count = lists.all_attempts(self.selection, oid, **self.ended)
            keys = list(rows.select("model", "tier", "oid", "iteration_id").iter_rows()) if rows.height else []
        known = comments.read_comments(self.data)
        texts = [known[key].text[:_COMMENT_SHOWN] if key in known else None for key in keys]
        return rows.with_columns(pl.Series("comment", texts, pl.String)) if any(texts) else rows

    @cached_property
    def audited(self) -> pl.DataFrame:
        return lists.audited_problems(self.selection)

    @cached_property
    def failures(self) -> pl.DataFrame:
        return lists.failure_list(self.selection)

    @cached_property
    def factors(self) -> pl.DataFrame:
        return self.selection.frame("factors").collect()

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

    @cached_property
    def query(self) -> Any:
        return run_sql(self.run, self.address.get("sql"))

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


def _leaderboard(view: View) -> dict[str, Any]:
    table = shown_table(view.leaderboard, view.address, "Leaderboard", lambda row: _problems_link(view, row))
    return {
        "heading": "Leaderboard",
        "hint": "Choose a row to see its problems.",
        "table": table,
        "save": "leaderboard",
    }


def _problems_link(view: View, row: dict[str, Any]) -> str:
    return view.address.link("/problems", of_model=row["model"], of_tier=row["tier"])


def _problems(view: View) -> dict[str, Any]:
    model, tier = view.entry

    def link(row: dict[str, Any]) -> str:
        return view.address.link("/attempts", of_model=model, of_tier=tier, problem=row["oid"])

    heading = f"Problems of {model}, tier {tier}"
    table = shown_table(view.problems, view.address, heading, link)
    return {
        "heading": heading,
        "hint": "The hardest first. Choose one to see its attempts.",
        "table": table,
        "save": "problems",
    }


def _attempts(view: View) -> dict[str, Any]:
    (model, tier), oid = view.entry, view.address.get("problem")

    def link(row: dict[str, Any]) -> str:
        key = (
            {"of_model": model, "of_tier": tier, "problem": oid}
            if model
            else {"of_model": row["model"], "of_tier": row["tier"], "problem": row["oid"]}
        )
        return view.address.link("/attempt", **key, attempt=row["iteration_id"])

    whose = f"Attempts of {model}, tier {tier}," if model else "Attempts"
    heading = f"{whose} at {oid}" if oid else whose
    table = shown_table(view.attempts, view.address, heading, link)
    hint = "Choose one to read it."
    if not model and view.attempt_count > view.attempts.height:
        hint = f"The first {counted_of(view.attempts.height, view.attempt_count, 'attempt')}. {hint}"
    return {"heading": heading, "hint": hint, "table": table, "save": "attempts"}


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
        "comment": comments.read_comments(view.data).get(key),
        "fix_sha": detail.fix_sha,
        "rulings": [row | {"pending": False} for row in detail.rulings] + _pending(view.data, detail),
        "rulings_file": rulings_file(view.data).name if is_writable(view.data) else "",
        "ruling_words": RULINGS,
        "others": others,
        "key": key,
    }
    return found | (_diff(view, detail) if view.address.get("other") else {})


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
    tables = (view.selection.frame(table).collect() for table in ("problem_audit", "audited_leaderboard"))
    heading = "Can the problems be trusted?"
    return {
        "heading": heading,
        "verdicts": problem_sentences(*tables),
        "hint": "The most suspect first. Choose one to see the attempts at it.",
        "table": shown_table(
            view.audited, view.address, heading, lambda row: view.address.link("/attempts", problem=row["oid"])
        ),
        "save": "problem_audit",
    }


def _failures(view: View) -> dict[str, Any]:
    """Why attempts fail; a reason leads to the attempts."""
    heading = "Why do they fail?"
    if view.failures.is_empty():
        return {"heading": heading, "message": "No failed attempt here has diagnostics or an error: why is not known."}
    table = shown_table(
        view.failures, view.address, heading, lambda row: view.address.link("/attempts", mode=row["fingerprint"])
    )
    return {"heading": heading, "hint": "Choose a reason to see its attempts.", "table": table, "save": "failures"}


def _factors(view: View) -> dict[str, Any]:
    """pass@1 by level, and in a line each what a level changes."""
    effects = [
        f"{row['model']}, {row['tier']}: {effect_words(row)}: {signed(row['difference'])} {interval(row, '')}, "
        f"adjusted p {p_value(row['p_adjusted'])}, {counted(row['problems'], 'problem')}"
        for row in view.selection.frame("factor_effects").collect().iter_rows(named=True)
    ]
    heading, table = "Factors", shown_table(view.factors, view.address, "pass@1 by factor")
    return {"heading": heading, "verdicts": effects, "table": table, "save": "factors"}


def _charts(view: View) -> dict[str, Any]:
    titles = chart_titles(view.run)
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
        frame = shown_rows(view.query)
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
    "leaderboard": lambda view: view.leaderboard,
    "problems": lambda view: view.problems,
    "attempts": lambda view: view.attempts,
    "failures": lambda view: view.failures,
    "factors": lambda view: view.factors,
    "problem_audit": lambda view: view.audited,
    "changed_cases": lambda view: view.compared.cases,
    "query": lambda view: view.query,
    "chart": lambda view: chart_rows(view.selection, view.address.get("chart") or "leaderboard").collect(),
}


def _reason(error: Exception) -> str:
    if isinstance(error, TouchstoneError):
        return str(error)
    return f"the tables cannot be read; if a run has replaced them, reload this page ({type(error).__name__})"


# The app


def dashboard(data: Path, form_token: str) -> Starlette:
    """The app on the results in a folder. `form_token` is in its forms, and what is posted must have it."""
    environment = _environment()
    template = environment.get_template("dashboard.html.j2")

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
                content = (csv_bytes if form == "csv" else parquet_bytes)(_ROWS[name](view))
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
    comments.write_comment(data, key, fields.get("text", ""), before=before, fix_sha=about.fix_sha)


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
        summary = lists.summary_line(view.selection, view.leaderboard)
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
        most_characters=comments.MOST_CHARACTERS,
        most_reason=MOST_CHARACTERS,
    )


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


def chart_titles(run: RunTables) -> dict[str, str]:
    """The names of the charts by their titles, of those whose table the run has."""
    return {chart.title: name for name, chart in CHARTS.items() if run.has(chart.table)}


def chart_rows(selection: Selection, name: str) -> pl.LazyFrame:
    """The table that a chart shows, under the filters."""
    return selection.frame(CHARTS[name].table)


def chart_svg(selection: Selection, name: str) -> bytes:
    """A chart of the selection as SVG, in the colours of paper."""
    return svg(_drawn(selection, name)).encode()


def _drawn(selection: Selection, name: str) -> Spec:
    others = CHARTS[name].beside.items()
    beside = {option: selection.frame(table) for option, table in others if selection.run.has(table)}
    return spec(name, chart_rows(selection, name), theme="light", **beside)


def csv_bytes(rows: "pl.DataFrame | pa.Table") -> bytes:
    """The rows as `touchstone export` writes them; the result of a query as `touchstone sql` does.

    >>> csv_bytes(pl.DataFrame({"name": ["=cmd()"], "n": [1]}))
    b"name,n\\n'=cmd(),1\\n"
    """
    return (csv_text(rows.lazy()) if isinstance(rows, pl.DataFrame) else format_result(rows, "csv")).encode()


def parquet_bytes(rows: "pl.DataFrame | pa.Table") -> bytes:
    """The rows with their types."""
    buffer = io.BytesIO()
    if isinstance(rows, pl.DataFrame):
        rows.write_parquet(buffer)
    else:
        import pyarrow.parquet as pq

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
