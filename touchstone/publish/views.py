"""DuckDB views, one per table over its Parquet files, and the formulas of `touchstone.metrics` as SQL macros.

`touchstone sql` reads them. The columns of a table belong in `touchstone.tables`, running SQL in
`touchstone.publish.query`, and the DuckDB file for other programs in `touchstone.publish.warehouse`. Tests check that
macros and metrics give the same figures. Their weights, grades and penalties come from the table `settings`, whose keys
are those of the configuration; a missing key takes its default.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError
from touchstone.storage.files import parquet_files
from touchstone.tables import TABLES

if TYPE_CHECKING:
    import duckdb

# C(n - marked, k) / C(n, k) as a product over the smaller of marked and k, as in `touchstone.metrics.pass_at_k`.
# The factors come from two zipped ranges, because a lambda that refers to the arguments would confuse a user's column
# with its own variable, and could not take a subquery at all.
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

_COST_OF_PASS = """
CREATE OR REPLACE MACRO cost_of_pass(cost_usd, pass_rate) AS CASE
    WHEN cost_usd IS NULL OR pass_rate IS NULL THEN NULL
    WHEN cost_usd < 0 THEN error('a cost cannot be negative, got ' || cost_usd)
    WHEN pass_rate = 0 THEN 'infinity'::DOUBLE
    ELSE cost_usd::DOUBLE / pass_rate
END
"""

_UPLIFT = "CREATE OR REPLACE MACRO uplift(score, baseline) AS (score - baseline)::DOUBLE / nullif(baseline, 0)"

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

_USED = (
    "scoring.composite.pass_rate",
    "scoring.composite.impl_rate",
    "scoring.composite.missing",
    "scoring.code.compilation",
    "scoring.code.tests",
    "scoring.code.lint",
    "scoring.code.structure",
    "scoring.code.per_warning",
    "scoring.grades",
    "scoring.failing_grade",
)


def macros(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """One CREATE statement per macro; `settings` maps the dotted keys of the configuration to values."""
    used = _with_defaults(settings)
    return (
        _CHANCE_OF_AVOIDING,
        "CREATE OR REPLACE MACRO pass_at_k(n, c, k) AS "
        "1 - chance_of_avoiding(n::BIGINT, c::BIGINT, c::BIGINT, k::BIGINT)",
        "CREATE OR REPLACE MACRO pass_hat_k(n, c, k) AS "
        "chance_of_avoiding(n::BIGINT, c::BIGINT, n::BIGINT - c::BIGINT, k::BIGINT)",
        _composite_score(used),
        _code_score(used),
        _COST_OF_PASS,
        _letter_grade(used),
        _UPLIFT,
        *_RELIABILITY,
    )


def _with_defaults(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if all(key in settings for key in _USED):
        return settings
    # Only for tables of another version: importing the configuration takes longer than most queries.
    from touchstone.config.scoring import Scoring
    from touchstone.publish.settings import scoring_settings

    return scoring_settings(Scoring()) | dict(settings)


def _composite_score(settings: Mapping[str, Any]) -> str:
    impl_rate = "coalesce(impl_rate, 0)" if settings["scoring.composite.missing"] == "zero" else "impl_rate"
    weights = (_number(settings[f"scoring.composite.{part}"]) for part in ("pass_rate", "impl_rate"))
    return """
CREATE OR REPLACE MACRO composite_score(pass_rate, impl_rate, pass_weight := {}, impl_weight := {}) AS
    (pass_rate * pass_weight + {} * impl_weight)::DOUBLE / (pass_weight + impl_weight)
""".format(*weights, impl_rate)


def _code_score(settings: Mapping[str, Any]) -> str:
    parts = ("compilation", "tests", "lint", "per_warning", "structure")
    compilation, tests, lint, per_warning, weight = (_number(settings[f"scoring.code.{part}"]) for part in parts)
    structure = f"\n        + {weight} * structure_score" if settings["scoring.code.structure"] else ""
    return f"""
CREATE OR REPLACE MACRO code_score(compiled, tests_passed, tests_failed, lint_warnings, structure_score := NULL) AS CASE
    WHEN compiled IS NULL THEN NULL
    WHEN NOT compiled::BOOLEAN THEN 0.0::DOUBLE
    ELSE {compilation}
        + {tests} * coalesce(
            coalesce(tests_passed, 0) / nullif(coalesce(tests_passed, 0) + coalesce(tests_failed, 0), 0), 0
        )
        + {lint} * greatest(0, 1 - {per_warning} * coalesce(lint_warnings, 0)){structure}
END
"""


def _letter_grade(settings: Mapping[str, Any]) -> str:
    falling = sorted(settings["scoring.grades"].items(), key=lambda item: -item[1])
    bands = "".join(f"    WHEN score >= {_number(lowest)} THEN {sql_text(name)}\n" for name, lowest in falling)
    failing = sql_text(settings["scoring.failing_grade"])
    return f"""
CREATE OR REPLACE MACRO letter_grade(score) AS CASE
    WHEN score IS NULL THEN NULL
{bands}    ELSE {failing}
END
"""


def _number(value: float) -> str:
    return f"{float(value)!r}::DOUBLE"


def sql_text(value: str) -> str:
    """The value as an SQL string literal.

    >>> sql_text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def create_views(connection: "duckdb.DuckDBPyConnection", tables_dir: Path) -> list[str]:
    """Create one view per table, and the macros with the settings of the run. Returns the table names, sorted."""
    import duckdb

    tables = table_files(tables_dir)
    for name, files in tables.items():
        try:
            connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT * FROM {parquet_scan(files, name)}')
        except duckdb.Error as error:
            raise TouchstoneError(f"table '{name}' cannot be read: {one_line(str(error))}") from error
    create_macros(connection, tables)
    return list(tables)


def create_macros(connection: "duckdb.DuckDBPyConnection", tables: Mapping[str, list[Path]]) -> None:
    """Create the macros with the settings of the run that produced the tables."""
    for macro in macros(_settings(connection, tables)):
        connection.execute(macro)


def table_files(tables_dir: Path) -> dict[str, list[Path]]:
    """The Parquet files of every table by table name, both sorted."""
    if not tables_dir.is_dir():
        return {}
    folders = sorted(
        folder for folder in tables_dir.resolve().iterdir() if TABLE_NAME.fullmatch(folder.name) and folder.is_dir()
    )
    parts = {folder.name: parquet_files(folder) for folder in folders}
    return {name: files for name, files in parts.items() if files}


def parquet_scan(files: list[Path], table: str) -> str:
    """The FROM clause that reads the files of a table as one relation."""
    # Only where columns of the input travel along do files differ; to unite their columns, every file is opened first.
    unite = str(table not in TABLES or bool(TABLES[table].extras)).lower()
    # With hive_partitioning, a folder such as `run=5` anywhere in the path would become a column.
    paths = ", ".join(sql_text(pattern(file)) for file in files)
    return f"read_parquet([{paths}], union_by_name = {unite}, hive_partitioning = false)"


def require_tables(tables_dir: Path) -> None:
    """Raise if the folder has no tables."""
    if not table_files(tables_dir):
        raise TouchstoneError(
            f"{tables_dir}: no tables here; run `touchstone run` first or pass the output folder as --data"
        )


def pattern(path: Path) -> str:
    """Escape the path for DuckDB, which takes every path for a glob pattern.

    >>> pattern(Path("/runs [1]/a*.parquet"))
    '/runs [[]1]/a[*].parquet'
    """
    return re.sub(r"[\[*?]", r"[\g<0>]", str(path))


def one_line(message: str) -> str:
    """DuckDB's error message and hint on one line, without the excerpt of the statement.

    >>> one_line('Parser Error: syntax error at or near "selec"\\n\\nLINE 1: selec 1\\n        ^^^^^')
    'Parser Error: syntax error at or near "selec"'
    """
    text = re.split(r"\n\s*\n|\nLINE \d+:", message.strip(), maxsplit=1)[0]
    line = " ".join(text.split())
    return line if len(line) <= 500 else line[:499] + "…"


def _settings(connection: "duckdb.DuckDBPyConnection", tables: Mapping[str, list[Path]]) -> dict[str, Any]:
    """The settings of the run; empty if another version produced the tables."""
    import duckdb

    if "settings" not in tables:
        return {}
    try:
        rows = connection.execute(f"SELECT key, value FROM {parquet_scan(tables['settings'], 'settings')}").fetchall()
        return {key: json.loads(value) for key, value in rows}
    except (duckdb.Error, TypeError, ValueError) as error:
        raise TouchstoneError(f"table 'settings' cannot be read: {one_line(str(error))}") from error
