"""Two CSV files per model, for people and programs that do not read Parquet: outcomes and pass@k.

`<model>_outcomes.csv` has one row per attempt and, renamed to `<model>_fixes.csv`, can itself be evaluated.
`<model>_pass_at_k.csv` has the model's rows of the summary. Both are written to the draft and published with the
tables; a file whose tables did not change is not rewritten.
"""

import json
from pathlib import Path
from typing import Literal

import polars as pl

from touchstone.metrics.counting import without_excluded
from touchstone.names import file_key
from touchstone.publish.csv_files import write_csv
from touchstone.publish.summary import summaries
from touchstone.regular_files import read_json
from touchstone.storage.files import file_mark, is_as_written, replacing
from touchstone.storage.store import CSV_FOLDER, Store, digest
from touchstone.vocabulary import OUTCOMES_CSV_COLUMNS

# With `publish.csv = "auto"`, the files are written up to this many attempts: a second or two, and 50 MB.
MAX_ROWS = 1_000_000

_STAMPS = "csv_stamps.json"
# Version of the files' layout; increment it when that changes.
_LAYOUT = 1


def write_model_csvs(store: Store, wanted: Literal["auto"] | bool, max_rows: int = MAX_ROWS) -> list[str]:
    """Update the CSV files in the draft and remove those of models that are gone. Returns the file names."""
    folder, stamps = store.draft / CSV_FOLDER, store.draft / _STAMPS
    known = _known(stamps)
    models = {model: part for model, part in store.all_parts("outcomes").items() if part.rows}
    rows = sum(part.rows for part in models.values())
    if wanted is False or (wanted == "auto" and rows > max_rows):
        models = {}
    figures = summaries(store.scan("pass_at_k").collect()) if models else {}
    made: dict[str, list[object]] = {}
    for model, part in models.items():
        own = figures[model]
        content = {
            f"{file_key(model)}_outcomes.csv": digest([_LAYOUT, part.fingerprint]),
            f"{file_key(model)}_pass_at_k.csv": digest([_LAYOUT, own.columns, own.rows()]),
        }
        outcomes_csv, pass_at_k_csv = (folder / name for name in content)
        if not _is_current(outcomes_csv, content, known):
            write_csv(outcomes_table(store.scan("outcomes", [model])), outcomes_csv)
            known[outcomes_csv.name] = [content[outcomes_csv.name], *file_mark(outcomes_csv)]
        if not _is_current(pass_at_k_csv, content, known):
            write_csv(own.lazy(), pass_at_k_csv)
            known[pass_at_k_csv.name] = [content[pass_at_k_csv.name], *file_mark(pass_at_k_csv)]
        made |= {name: known[name] for name in content}
    for path in folder.glob("*"):
        if path.name not in made:
            path.unlink()
    with replacing(stamps) as scratch:
        scratch.write_text(json.dumps(made))
    return sorted(made)


def _known(stamps: Path) -> dict[str, list[object]]:
    """What the files were made from, and their marks; nothing if that is missing or damaged."""
    try:
        known = read_json(stamps)
    except (OSError, ValueError):
        return {}
    entries = known.items() if isinstance(known, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, list)}


def outcomes_table(outcomes: pl.LazyFrame) -> pl.LazyFrame:
    """Outcomes that count, with the column names of a fixes file."""
    return without_excluded(outcomes).rename({"passed": "plausible_fix"}).select(OUTCOMES_CSV_COLUMNS)


def _is_current(path: Path, content: dict[str, str], known: dict[str, list[object]]) -> bool:
    made_from, *mark = known.get(path.name, [None])
    return made_from == content[path.name] and is_as_written(path, mark)
