"""The tables as DuckDB sees them: one view per table over its Parquet files, and the formulas as SQL macros.

A view holds no rows, so the warehouse stays small and cannot disagree with the files. Which columns a table
has belongs in `touchstone.contracts`; people's own SQL runs in `touchstone.publish.query`.
"""

import re
from pathlib import Path

import duckdb

from touchstone.errors import TouchstoneError
from touchstone.files import replacing

TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]*")

# C(n - marked, k) / C(n, k) as a product over the smaller of marked and k, just as in
# `touchstone.metrics.pass_at_k`. The factors come from two zipped ranges because a lambda that looks at the
# arguments would take a user's column for its own variable, and could not take a subquery at all.
_CHANCE_OF_AVOIDING = """
CREATE OR REPLACE MACRO chance_of_avoiding(n, c, marked, k) AS CASE
    WHEN n IS NULL OR c IS NULL OR k IS NULL THEN NULL
    WHEN c < 0 OR c > n THEN error('there cannot be ' || c || ' passes among ' || n || ' attempts')
    WHEN k < 1 THEN error('k must be at least 1, got ' || k)
    WHEN n < k THEN NULL
    WHEN marked = 0 THEN 1.0::DOUBLE
    WHEN marked + k > n THEN 0.0::DOUBLE
    ELSE list_product(list_transform(
        list_zip(
            range(n - marked - k + 1, n - greatest(marked, k) + 1),
            range(n - least(marked, k) + 1, n + 1)
        ),
        lambda pair: pair[1] / pair[2]
    ))
END
"""

# The formulas of `touchstone.metrics.attempts` and `tiers` with their default weights, which may be given instead.
_SCORES = (
    """
CREATE OR REPLACE MACRO composite_score(pass_rate, impl_rate, pass_weight := 0.5, impl_weight := 0.5) AS
    (pass_rate * pass_weight + impl_rate * impl_weight)::DOUBLE / (pass_weight + impl_weight)
""",
    """
CREATE OR REPLACE MACRO code_score(compiled, tests_passed, tests_failed, lint_warnings) AS CASE
    WHEN compiled IS NULL THEN NULL
    WHEN NOT compiled::BOOLEAN THEN 0.0::DOUBLE
    ELSE 0.4::DOUBLE
        + 0.5::DOUBLE * coalesce(
            coalesce(tests_passed, 0) / nullif(coalesce(tests_passed, 0) + coalesce(tests_failed, 0), 0), 0
        )
        + 0.1::DOUBLE * greatest(0, 1 - 0.1::DOUBLE * coalesce(lint_warnings, 0))
END
""",
    """
CREATE OR REPLACE MACRO cost_of_pass(cost_usd, pass_rate) AS CASE
    WHEN cost_usd IS NULL OR pass_rate IS NULL THEN NULL
    WHEN pass_rate = 0 THEN 'infinity'::DOUBLE
    ELSE cost_usd::DOUBLE / pass_rate
END
""",
    """
CREATE OR REPLACE MACRO letter_grade(score) AS CASE
    WHEN score IS NULL THEN NULL
    WHEN score >= 0.95::DOUBLE THEN 'A'
    WHEN score >= 0.85::DOUBLE THEN 'B'
    WHEN score >= 0.75::DOUBLE THEN 'C'
    WHEN score >= 0.65::DOUBLE THEN 'D'
    ELSE 'F'
END
""",
    "CREATE OR REPLACE MACRO uplift(score, baseline) AS (score - baseline)::DOUBLE / nullif(baseline, 0)",
)

# The formulas of `touchstone.metrics.reliability`.
_RELIABILITY = (
    """
CREATE OR REPLACE MACRO flips(n, c) AS CASE
    WHEN c < 0 OR c > n THEN error('there cannot be ' || c || ' passes among ' || n || ' attempts')
    WHEN n >= 2 THEN c > 0 AND c < n
END
""",
    """
CREATE OR REPLACE MACRO consistency(n, c) AS CASE
    WHEN c < 0 OR c > n THEN error('there cannot be ' || c || ' passes among ' || n || ' attempts')
    WHEN n >= 2
    THEN (c::BIGINT * (c::BIGINT - 1) + (n::BIGINT - c::BIGINT) * (n::BIGINT - c::BIGINT - 1))::DOUBLE
        / (n::BIGINT * (n::BIGINT - 1))
END
""",
)

MACROS: tuple[str, ...] = (
    _CHANCE_OF_AVOIDING,
    "CREATE OR REPLACE MACRO pass_at_k(n, c, k) AS 1 - chance_of_avoiding(n::BIGINT, c::BIGINT, c::BIGINT, k::BIGINT)",
    "CREATE OR REPLACE MACRO pass_hat_k(n, c, k) AS "
    "chance_of_avoiding(n::BIGINT, c::BIGINT, n::BIGINT - c::BIGINT, k::BIGINT)",
    *_SCORES,
    *_RELIABILITY,
)


def create_views(connection: duckdb.DuckDBPyConnection, tables_dir: Path) -> list[str]:
    """Creates the macros and one view per table; returns the tables' names, sorted."""
    for macro in MACROS:
        connection.execute(macro)
    tables = table_files(tables_dir)
    for name, files in tables.items():
        try:
            connection.execute(_view(name, files))
        except duckdb.Error as error:
            raise TouchstoneError(f"table '{name}' cannot be read: {one_line(str(error))}") from error
    return list(tables)


def build_warehouse(path: Path, tables_dir: Path) -> list[str]:
    """Writes a DuckDB file with the views and macros; returns the tables' names, sorted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as scratch:
        with duckdb.connect(str(scratch)) as connection:
            names = create_views(connection, tables_dir)
        # A log that a killed reader left behind belongs to the old file and would break the new one.
        path.with_name(path.name + ".wal").unlink(missing_ok=True)
    return names


def table_files(tables_dir: Path) -> dict[str, list[Path]]:
    """The Parquet files of every table, by name, both sorted. Hidden files are still being written."""
    if not tables_dir.is_dir():
        return {}
    folders = sorted(
        folder for folder in tables_dir.resolve().iterdir() if TABLE_NAME.fullmatch(folder.name) and folder.is_dir()
    )
    parts = {
        folder.name: sorted(file for file in folder.glob("*.parquet") if not file.name.startswith("."))
        for folder in folders
    }
    return {name: files for name, files in parts.items() if files}


def pattern(path: Path) -> str:
    """The path as DuckDB must read it, which takes every path for a glob pattern.

    >>> pattern(Path("/runs [1]/a*.parquet"))
    '/runs [[]1]/a[*].parquet'
    """
    return re.sub(r"[\[*?]", r"[\g<0>]", str(path))


def sql_text(value: str) -> str:
    """The value as an SQL literal.

    >>> sql_text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def one_line(message: str) -> str:
    """What DuckDB has to say, hint included, without its drawing of the statement.

    >>> one_line('Parser Error: syntax error at or near "selec"\\n\\nLINE 1: selec 1\\n        ^^^^^')
    'Parser Error: syntax error at or near "selec"'
    """
    said = re.split(r"\n\s*\n|\nLINE \d+:", message.strip(), maxsplit=1)[0]
    line = " ".join(said.split())
    return line if len(line) <= 500 else line[:499] + "…"


def _view(name: str, files: list[Path]) -> str:
    # Without hive_partitioning=false, a folder such as `run=5` anywhere above would become a column.
    paths = ", ".join(sql_text(pattern(file)) for file in files)
    return (
        f'CREATE OR REPLACE VIEW "{name}" AS '
        f"SELECT * FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false)"
    )
