"""The section `gates` of the configuration, and the language of its expressions: `pass@1(model=atlas) >= 0.6`.

    gate   := figure, or ci_low(figure) or ci_high(figure); >= <= > < or =; number, or number %; [for all]
    figure := pass@K, pass^K, a column, or table.column; with [( problem, or key=value, … )]

An expression is parsed and held against the declared tables; nothing is evaluated. Whether a gate holds is decided in
`touchstone.comparison.gates`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, field_validator

from touchstone.errors import TouchstoneError
from touchstone.tables import GATED, TABLES, Table
from touchstone.text import near
from touchstone.vocabulary import MAX_ID_LENGTH

# Columns that several tables have, or none, and where they are taken from.
_USUAL = {"cost_of_pass": "economics", "difference": "baseline_verdicts", "undecided": "problem_scores"}
_NUMBERS = ("Float64", "Int64")
_MAX_K = 1_000_000


@dataclass(frozen=True)
class GateExpression:
    """A parsed gate: a column of a table, or an end of its interval, in the rows `where`, against a bound.

    With `for_all` every row must hold, else there is one row per model and tier.
    """

    text: str
    table: str
    column: str
    comparison: str
    bound: float
    end: Literal["low", "high"] | None = None
    where: dict[str, str | int] = field(default_factory=dict)
    by_problem: bool = False
    for_all: bool = False
    percent: bool = False


def figures_of(table: Table) -> list[str]:
    """The columns of a table that a gate can name."""
    own = [name for name, each in table.fields.items() if each.type_name in _NUMBERS and name not in table.key]
    return [name for name in own if not name.endswith(("ci_low", "ci_high", "ci_units"))]


def interval_columns(table: Table, column: str) -> tuple[str, str] | None:
    """The columns with the ends of a figure's confidence interval; those adjusted for several comparisons, if any.

    >>> interval_columns(TABLES["economics"], "cost_of_pass"), interval_columns(TABLES["economics"], "pass_rate")
    (('ci_low', 'ci_high'), None)
    """
    names = list(table.fields)
    following = names[names.index(column) + 1 :] if column in names else []
    if column == "difference" and "adjusted_ci_low" in names:
        return "adjusted_ci_low", "adjusted_ci_high"
    if f"{column}_ci_low" in names:
        return f"{column}_ci_low", f"{column}_ci_high"
    is_estimate = following[:1] == ["ci_low"] and table.fields[column].type_name == "Float64"
    return ("ci_low", "ci_high") if is_estimate else None


def parse_gate(text: str) -> GateExpression:
    """Parse an expression; a `ValueError` says what is wrong, and in which column.

    >>> parse_gate("pass@1(model=atlas) >= 60%").bound
    0.6
    >>> parse_gate("pas@1 >= 0.6")
    Traceback (most recent call last):
    ValueError: 'pas@1 >= 0.6', column 1: there is no figure 'pas@1'; did you mean 'pass@1'?
    """
    return _Parser(text).gate()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        if len(text) > MAX_ID_LENGTH:
            self.fail(f"the expression is longer than {MAX_ID_LENGTH} characters", MAX_ID_LENGTH)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        place = self.at if at is None else at
        raise ValueError(f"{self.text!r}, column {place + 1}: {message}")

    def take(self, pattern: str) -> str | None:
        """The text at this place if it matches, without the space around it."""
        found = re.compile(rf"({pattern})\s*").match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found[1] if found else None

    def expect(self, pattern: str, what: str) -> str:
        found = self.take(pattern)
        if found is None:
            rest = self.text[self.at :].split(" ")[0]
            self.fail(f"expected {what}" + (f", not {rest!r}" if rest else ""))
        return found

    def gate(self) -> GateExpression:
        self.take("")
        start, end = self.at, self.take(r"ci_(?:low|high)\s*\(")
        figure = self.figure()
        table, column, where = TABLES[figure["table"]], figure["column"], figure["where"]
        ends = interval_columns(table, column)
        if end:
            self.expect(r"\)", "')'")
            if ends is None or figure["by_problem"]:
                self.fail(f"there is no confidence interval of '{column}' in '{table.name}'", start)
        place, comparison = self.at, self.expect(r">=|<=|==?(?![<>])|>|<", "a comparison: >= <= > < =")
        if comparison in ("=", "==") and (ends or figure["by_problem"]) and not end:
            self.fail("an estimate cannot be shown to be equal to a number; use >= or <=", place)
        number = Decimal(self.expect(r"[-+]?(?:\d{1,15}\.?\d{0,15}|\.\d{1,15})(?![\w.])", "a number"))
        percent = self.take("%") is not None
        open_keys = [key for key in table.key if key not in {"model", "tier", *where}]
        place, for_all = self.at, self.take(r"for\s+all\b") is not None
        if self.at < len(self.text):
            self.fail(f"expected the end, or 'for all', not {self.text[self.at :]!r}")
        is_summed = (table.name, column) == ("problem_scores", "undecided")
        if open_keys and not for_all and not is_summed:
            hint = (
                "add 'for all'" if figure["by_problem"] else f"choose one, as in ({open_keys[-1]}=…), or add 'for all'"
            )
            self.fail(f"'{table.name}' has a row per {' and '.join(open_keys)}; {hint}", place)
        return GateExpression(
            self.text,
            comparison=comparison[:1] if comparison == "==" else comparison,
            bound=float(number / 100 if percent else number),
            end=None if end is None else "low" if end.startswith("ci_low") else "high",
            for_all=for_all,
            percent=percent,
            **figure,
        )

    def figure(self) -> dict[str, Any]:
        start, word = self.at, self.expect(r"[A-Za-z_][\w.@^]*", "a figure, such as pass@1")
        table, column, where = self.resolve(word, start)
        by_problem = False
        if self.take(r"\("):
            while True:
                place, key = self.at, self.expect(r"\w+", "'problem', or key=value")
                free = [each for each in TABLES[table].key if each not in where]
                if key == "problem" and "k" in where:
                    table, by_problem = "problem_pass_at_k", True
                elif key not in free:
                    self.fail(f"'{table}' has no key '{key}' to choose by; {near(key, free)}", place)
                else:
                    self.expect("=", "'='")
                    place, value = self.at, self.expect(r'"[^"]*"|[^,()"]*[^,()"\s]', "a value").strip('"')
                    is_number = TABLES[table].fields[key].type_name == "Int64"
                    if is_number and not value.isdecimal():
                        self.fail(f"{key} must be a number, not '{value}'", place)
                    where[key] = int(value) if is_number else value
                if self.expect(r",|\)", "',' or ')'") == ")":
                    break
        return {"table": table, "column": column, "where": where, "by_problem": by_problem}

    def resolve(self, word: str, start: int) -> tuple[str, str, dict[str, str | int]]:
        """The table and column that a word means, and the k that it names."""
        passing = re.fullmatch(r"pass([@^])([1-9]\d{0,6})", word)
        if passing and int(passing[2]) <= _MAX_K:
            found = ("pass_at_k", "pass_at_k") if passing[1] == "@" else ("reliability_curve", "pass_hat_k")
            return *found, {"k": int(passing[2])}
        name, dot, column = word.partition(".")
        if dot and name not in GATED:
            self.fail(f"there is no table '{name}' with figures; {near(name, GATED)}", start)
        if dot and column not in figures_of(TABLES[name]):
            self.fail(f"'{name}' has no figure '{column}'; {near(column, figures_of(TABLES[name]))}", start)
        if dot:
            return name, column, {}
        tables = [table for table in GATED if word in figures_of(TABLES[table])]
        table = _USUAL.get(word) or (tables[0] if tables else None)
        if table is None:
            known = {figure: None for table in GATED for figure in figures_of(TABLES[table])}
            self.fail(f"there is no figure '{word}'; {near(word, ['pass@1', 'pass^1', *_USUAL, *known])}", start)
        if len(tables) > 1 and word not in _USUAL:
            self.fail(f"several tables have '{word}'; write {' or '.join(f'{each}.{word}' for each in tables)}", start)
        return table, word, {}


class GateSettings(BaseModel):
    """What must hold before a run is published; a list stands for its `expressions`. See [gates](ci.md#gates)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    expressions: list[str] = []
    """Such as `pass@1 >= 0.6`, for every model and tier. A gate that failed blocks publishing."""
    on_inconclusive: Literal["pass", "warn", "fail"] = "warn"
    """Whether a gate that the data cannot decide passes, is warned about, or fails."""

    @field_validator("expressions")
    @classmethod
    def _parsed(cls, expressions: list[str]) -> list[str]:
        return [gate.text for gate in map(parse_gate, dict.fromkeys(expressions))]

    @property
    def gates(self) -> list[GateExpression]:
        """The parsed expressions."""
        return [parse_gate(each) for each in self.expressions]


def with_more_gates(
    settings: GateSettings, expressions: Iterable[str], on_inconclusive: Literal["pass", "warn", "fail"] | None
) -> GateSettings:
    """The settings with the expressions of the command line."""
    try:
        more = [parse_gate(each).text for each in expressions]
    except ValueError as error:
        raise TouchstoneError(f"--gate {error}") from None
    every = list(dict.fromkeys([*settings.expressions, *more]))
    return GateSettings(expressions=every, on_inconclusive=on_inconclusive or settings.on_inconclusive)
