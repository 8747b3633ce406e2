"""The section `gates` of the configuration, and the language of its expressions: `pass@1(model=atlas) >= 0.6`.

    gate   := figure, ci_low(figure) or ci_high(figure); then >= <= > < or =; then a number, or one with %; [for all]
    figure := pass@K, pass^K, a column or table.column, with [(problem, key=value, …)]

An expression is parsed and checked against the declared tables, never evaluated. Whether a gate holds is decided in
`touchstone.comparison.gates`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NoReturn

from pydantic import field_validator

from touchstone.config.file import Section
from touchstone.errors import TouchstoneError
from touchstone.tables import GATED, TABLES, Table
from touchstone.text import near
from touchstone.vocabulary import MAX_ID_LENGTH

OnInconclusive = Literal["pass", "warn", "fail"]
# Columns that several tables have, or none, and where they are taken from.
_USUAL = {"cost_of_pass": "economics", "difference": "baseline_verdicts", "undecided": "problem_scores"}


@dataclass(frozen=True)
class GateExpression:
    """A parsed gate: a column of a table, or an `end` of its interval, in the rows `where`, against a bound."""

    text: str
    table: str
    column: str
    where: dict[str, str | int]
    end: str | None
    comparison: str
    bound: float
    percent: bool

    @property
    def by_problem(self) -> bool:
        """Whether it is about pass@k or pass^k of every problem."""
        return self.table == "problem_pass_at_k" and "k" in self.where

    @property
    def items(self) -> list[str]:
        """The keys that tell the rows of a model and tier apart."""
        if (self.table, self.column) == ("problem_scores", "undecided"):
            return []  # It is summed over the rows.
        return [key for key in TABLES[self.table].key if key not in {"model", "tier", *self.where}]


def figures_of(table: Table) -> list[str]:
    """The columns of a table that a gate can name."""
    numbers = [name for name, field in table.fields.items() if field.type_name in ("Float64", "Int64")]
    return [name for name in numbers if name not in table.key and not re.search("ci_(low|high|units)$", name)]


def interval_columns(table: Table, column: str) -> tuple[str, str] | None:
    """The columns with the ends of a figure's confidence interval, adjusted for several comparisons if there are such.

    >>> interval_columns(TABLES["economics"], "cost_of_pass"), interval_columns(TABLES["economics"], "pass_rate")
    (('ci_low', 'ci_high'), None)
    """
    names = list(table.fields)
    own = ["adjusted_ci"] * (column == "difference") + [f"{column}_ci"]
    # The interval without a name is that of the figure before it.
    own += ["ci"] * (("ci_low" in names and names[names.index("ci_low") - 1]) == column)
    found = next((name for name in own if f"{name}_low" in names and column in figures_of(table)), None)
    return None if found is None or table.fields[column].type_name == "Int64" else (f"{found}_low", f"{found}_high")


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
        raise ValueError(f"{self.text!r}, column {(self.at if at is None else at) + 1}: {message}")

    def take(self, pattern: str, expected: str = "") -> str:
        """The text at this place if it matches, without the space after it; else nothing, or an error if `expected`."""
        found = re.compile(rf"({pattern})\s*").match(self.text, self.at)
        if found is None and expected:
            rest = self.text[self.at :].partition(" ")[0]
            self.fail(f"expected {expected}" + (f", not {rest!r}" if rest else ""))
        self.at = found.end() if found else self.at
        return found[1] if found else ""

    def gate(self) -> GateExpression:
        self.take("")
        start, end = self.at, self.take(r"ci_(?:low|high)\s*\(")[3:7].rstrip(" (")
        table, column, where = self.figure()
        ends = ("ci_low", "ci_high") if table == "problem_pass_at_k" else interval_columns(TABLES[table], column)
        if end and (ends is None or table == "problem_pass_at_k"):
            self.fail(f"there is no confidence interval of '{column}' in '{table}'", start)
        if end:
            self.take(r"\)", "')'")
        place, comparison = self.at, self.take(r">=|<=|==?(?![<>])|>|<", "a comparison: >= <= > < =")
        if comparison.startswith("=") and ends and not end:
            self.fail("an estimate cannot be shown to be equal to a number; use >= or <=", place)
        number = Decimal(self.take(r"[-+]?(?:\d{1,15}\.?\d{0,15}|\.\d{1,15})(?![\w.])", "a number"))
        percent = bool(self.take("%"))
        bound = float(number / 100 if percent else number)
        gate = GateExpression(
            self.text, table, column, where, end or None, "=" if comparison == "==" else comparison, bound, percent
        )
        place, for_all = self.at, self.take(r"for\s+all\b")
        if self.at < len(self.text):
            self.fail(f"expected 'for all' or the end, not {self.text[self.at :]!r}")
        if gate.items and not for_all:
            hint = "" if gate.by_problem else f"choose one, as in ({gate.items[-1]}=…), or "
            self.fail(f"'{table}' has a row per {' and '.join(gate.items)}; {hint}add 'for all'", place)
        return gate

    def figure(self) -> tuple[str, str, dict[str, str | int]]:
        start = self.at
        table, column, where = self.resolve(self.take(r"[A-Za-z_][\w.@^]*", "a figure, such as pass@1"), start)
        after = self.take(r"\(")
        while after in ("(", ","):
            free = [key for key in TABLES[table].key if key not in where]
            place, key = self.at, self.take(r"\w+", "'problem' or key=value")
            if key == "problem" and "k" in where:
                table = "problem_pass_at_k"
            elif key not in free:
                self.fail(f"'{table}' has no key '{key}' to choose by; {near(key, free)}", place)
            else:
                self.take("=", "'='")
                is_number = TABLES[table].fields[key].type_name == "Int64"
                pattern, what = (r"\d{1,9}", "a number") if is_number else (r'"[^"]*"|[^,()"]*[^,()"\s]', "a value")
                value = self.take(pattern, what).strip('"')
                where[key] = int(value) if is_number else value
            after = self.take(r",|\)", "',' or ')'")
        return table, column, where

    def resolve(self, word: str, start: int) -> tuple[str, str, dict[str, str | int]]:
        """The table and column that a word means, and the k that it names."""
        passing = re.fullmatch(r"pass([@^])([1-9]\d{0,5})", word)
        if passing:
            found = ("pass_at_k", "pass_at_k") if passing[1] == "@" else ("reliability_curve", "pass_hat_k")
            return *found, {"k": int(passing[2])}
        name, dot, column = word.rpartition(".")
        if dot and name not in GATED:
            self.fail(f"there is no table '{name}' with figures; {near(name, GATED)}", start)
        known = {each: figures_of(TABLES[each]) for each in ([name] if dot else GATED)}
        tables = [_USUAL[word]] if word in _USUAL else [table for table, figures in known.items() if column in figures]
        if not tables:
            usual = [] if dot else ["pass@1", "pass^1", *_USUAL]
            hint = near(column, dict.fromkeys([*usual, *(each for figures in known.values() for each in figures)]))
            self.fail(f"there is no figure '{word}'; {hint}", start)
        if len(tables) > 1:
            self.fail(f"several tables have '{word}'; write {' or '.join(f'{each}.{word}' for each in tables)}", start)
        return tables[0], column, {}


class GateSettings(Section):
    """Conditions for publishing a run; a list stands for its `expressions`. See [gates](ci.md#gates)."""

    expressions: list[str] = []
    """Such as `pass@1 >= 0.6`, for every model and tier. A gate that failed blocks publishing."""
    on_inconclusive: OnInconclusive = "warn"
    """Whether a gate that the data cannot decide passes, is warned about, or fails."""

    @field_validator("expressions")
    @classmethod
    def _parsed(cls, expressions: list[str]) -> list[str]:
        return [parse_gate(each).text for each in dict.fromkeys(expressions)]

    def with_more(self, expressions: Iterable[str], on_inconclusive: OnInconclusive | None) -> "GateSettings":
        """The settings with what the command line adds."""
        try:
            more = self._parsed([*self.expressions, *expressions])
        except ValueError as error:
            raise TouchstoneError(f"--gate {error}") from None
        return GateSettings(expressions=more, on_inconclusive=on_inconclusive or self.on_inconclusive)
