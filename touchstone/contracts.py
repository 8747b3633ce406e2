"""The tables, as dataframely schemas: the one place where a column is defined.

The schema check on every write, the column descriptions in the Dagster UI, the data dictionary in
`docs/tables.md` and the views in the warehouse are all made from this file. How a column is computed
belongs in `touchstone.ingest`, `touchstone.validation` or `touchstone.metrics`.
"""

from dataclasses import dataclass
from functools import cached_property

import dataframely as dy
import polars as pl

from touchstone.vocabulary import CI_METHODS, CLASSES, DEFAULT_SUITE, DEFAULT_TIER, MAX_ID_LENGTH, STATUSES


def _id(description: str, *, key: bool = True, unique: bool = True) -> dy.String:
    # dataframely's primary-key rule costs seconds at millions of rows, so the per-attempt tables mark
    # their key in metadata only (unique=False) and rely on ingest, which refuses duplicates.
    return dy.String(
        primary_key=key and unique,
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"key": True} if key else None,
        description=description,
    )


def _text(description: str) -> dy.String:
    return dy.String(nullable=True, description=description)


def _count(description: str, *, nullable: bool = False) -> dy.Int64:
    return dy.Int64(nullable=nullable, min=0, description=description)


def _share(description: str) -> dy.Float64:
    return dy.Float64(nullable=True, min=0, max=1, description=description)


def _amount(description: str) -> dy.Float64:
    return dy.Float64(nullable=True, min=0, description=description)


class Problems(dy.Schema):
    oid = _id("Unique identifier of the problem.")
    filename = dy.String(nullable=True, description="The file being repaired.")
    suite = dy.String(description=f"Suite the problem belongs to; `{DEFAULT_SUITE}` where the file names none.")
    cluster = _text("Group of problems that are not independent of each other; null: the problem stands alone.")


class Attempts(dy.Schema):
    model = _id("Model that wrote the fix, from the file's name.", unique=False)
    tier = _id(f"Tier of the attempt; `{DEFAULT_TIER}` where the file names none.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Which attempt at the problem this is, as text.", unique=False)
    run_id = _text("Run the attempt belongs to; null unless the file has runs.")
    suite = dy.String(description="Suite: the attempt's own, else its problem's.")
    fix_sha = _text("SHA-256 of the fix's text; null where the file brings none.")
    passed = dy.Bool(nullable=True, description="The outcome that the file states or implies; null: none yet.")
    compiled = dy.Bool(nullable=True, description="Whether the fixed code compiled.")
    tests_passed = _count("Tests that passed.", nullable=True)
    tests_failed = _count("Tests that failed.", nullable=True)
    lint_warnings = _count("Lint warnings.", nullable=True)
    weighted_score = dy.Float64(nullable=True, description="Judge's weighted score, as given.")
    classification = dy.String(
        nullable=True,
        check=lambda column: column.is_in(CLASSES),
        description="Outcome class: " + ", ".join(CLASSES) + ".",
    )
    input_tokens = _count("Prompt tokens.", nullable=True)
    output_tokens = _count("Completion tokens.", nullable=True)
    cache_read_tokens = _count("Tokens read from the prompt cache.", nullable=True)
    cache_write_tokens = _count("Tokens written to the prompt cache.", nullable=True)
    cost_usd = _amount("Cost of the attempt in US dollars, as given.")
    duration_seconds = _amount("Duration of the attempt in seconds, as given.")
    latency_ms = _amount("Latency of the model's answer in milliseconds.")


class Quarantine(dy.Schema):
    source_file = dy.String(description="File that the row stood in.")
    line = _count("Line at which the row starts, from 1; null where the whole file was refused.", nullable=True)
    kind = dy.String(description="Kind of trouble, to group by: ragged, bad_boolean, unknown_oid, …")
    reason = dy.String(description="What is wrong, in words.")
    raw = _text("The row as it stood in the file, cut at 2,000 characters.")


class Sources(dy.Schema):
    model = _id("Model that the file speaks for.")
    source_file = dy.String(description="File, by name.")
    sha256 = _text("SHA-256 of the file's bytes.")
    rows = _count("Rows in the file.")
    accepted = _count("Rows that became attempts.")
    quarantined = _count("Rows that were refused.")
    error = _text("Why the file could not be read at all; null: it was read.")


class Outcomes(dy.Schema):
    model = _id("Model that wrote the fix.", unique=False)
    tier = _id("Tier of the attempt.", unique=False)
    oid = _id("Problem that the fix is for.", unique=False)
    iteration_id = _id("Which attempt at the problem this is.", unique=False)
    status = dy.String(
        check=lambda column: column.is_in(STATUSES),
        description="How validation ended: " + ", ".join(STATUSES) + ".",
    )
    passed = dy.Bool(nullable=True, description="The verdict; null: not decided, counted neither way.")
    validator = _text("What decided: `recorded` is the input's own outcome.")
    validator_version = _text("Version of the validator.")
    fidelity = _text("How much the verdict means: syntax, static, full, or recorded.")
    sandbox = _text("Sandbox that the validator ran in; null: none was needed.")
    cached = dy.Bool(description="Whether the verdict came from the outcome cache.")
    duration_seconds = _amount("How long validation took.")
    diagnostics = _text("What the validator said.")
    compiled = dy.Bool(nullable=True, description="Whether the fixed code compiled.")
    tests_passed = _count("Tests that passed.", nullable=True)
    tests_failed = _count("Tests that failed.", nullable=True)
    lint_warnings = _count("Lint warnings.", nullable=True)


class ProblemPassAtK(dy.Schema):
    model = _id("Model.", unique=False)
    tier = _id("Tier.", unique=False)
    oid = _id("Problem.", unique=False)
    k = dy.Int64(min=1, metadata={"key": True}, description="Budget of attempts.")
    n = _count("Decided attempts.")
    c = _count("Passed attempts.")
    pass_at_k = _share("Chance that at least one of k attempts passes; null where n < k.")
    pass_hat_k = _share("Chance that all of k attempts pass (pass^k); null where n < k.")


class PassAtK(dy.Schema):
    model = _id("Model.")
    tier = _id("Tier.")
    k = dy.Int64(primary_key=True, min=1, metadata={"key": True}, description="Budget of attempts.")
    pass_at_k = _share("Mean over the eligible problems; null where there are none.")
    ci_low = _share("Lower end of the confidence interval of pass_at_k.")
    ci_high = _share("Upper end of the confidence interval of pass_at_k.")
    ci_method = dy.String(
        nullable=True,
        check=lambda column: column.is_in(CI_METHODS),
        description="How the interval was made: " + ", ".join(CI_METHODS) + ".",
    )
    ci_units = _count("Independent units behind the interval: problems, or clusters where problems share one.")
    pass_at_k_all = _share("The same mean with every unattempted problem counted as 0.")
    pass_hat_k = _share("Mean pass^k over the eligible problems.")
    problems = _count("Problems in the benchmark.")
    attempted = _count("Problems with at least one decided attempt.")
    eligible = _count("Problems with at least k decided attempts.")


@dataclass(frozen=True)
class Table:
    """A table of the output folder: its schema, what a row is, and whether input columns travel along."""

    name: str
    schema: type[dy.Schema]
    grain: str
    extras: bool = False
    per_model: bool = False

    @cached_property
    def key(self) -> list[str]:
        """The columns that name a row."""
        return [name for name, column in self.schema.columns().items() if (column.metadata or {}).get("key", False)]

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """One line per column."""
        return {name: column.description or "" for name, column in self.schema.columns().items()}

    @cached_property
    def dtypes(self) -> pl.Schema:
        """Column types, in order."""
        return pl.Schema({name: column.dtype for name, column in self.schema.columns().items()})


TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table("problems", Problems, "problem", extras=True),
        Table("attempts", Attempts, "attempt, as ingested", extras=True, per_model=True),
        Table("quarantine", Quarantine, "refused row"),
        Table("sources", Sources, "input file and model"),
        Table("outcomes", Outcomes, "attempt, validated", per_model=True),
        Table("problem_pass_at_k", ProblemPassAtK, "model, tier, problem and k"),
        Table("pass_at_k", PassAtK, "model, tier and k"),
    )
}


def conform(frame: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """The frame in the contract's column order and types, with extra columns behind where they may be.

    >>> problem = pl.LazyFrame({"oid": ["a"], "filename": ["f"], "suite": ["s"], "cluster": [None]})
    >>> conform(problem, TABLES["problems"]).collect_schema()["cluster"]
    String
    """
    present = frame.collect_schema().names()
    missing = [name for name in table.dtypes if name not in present]
    if missing:
        raise ValueError(f"table '{table.name}' lacks {', '.join(missing)}")
    columns = [pl.col(name).cast(dtype) for name, dtype in table.dtypes.items()]
    extras = [name for name in present if name not in table.dtypes]
    if extras and not table.extras:
        raise ValueError(f"table '{table.name}' has no column {', '.join(extras)}")
    return frame.select(*columns, *extras)


def violations(frame: pl.LazyFrame, table: Table) -> dict[str, int]:
    """How many rows break each rule of the contract; empty where it holds."""
    own = frame.select(list(table.dtypes))
    if table.schema.is_valid(own):
        return {}
    return dict(table.schema.filter(own.collect()).failure.counts())
