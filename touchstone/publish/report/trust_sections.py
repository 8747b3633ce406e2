"""The tables of the report on what the figures rest on: problems, outcomes, checks, quarantine, inputs."""

from collections.abc import Iterator

import polars as pl

from touchstone.publish.figures import dollars, number
from touchstone.publish.report.figures_sections import side, side_columns
from touchstone.publish.report.grids import Cell, Column, Grid, count, figure, grid, names, numbers, text
from touchstone.publish.report.run import ReportedRun, Row

_MAX_QUARANTINE = 200


def problems(run: ReportedRun) -> Iterator[Grid]:
    """Every problem, the hardest first, and the tests that are flaky."""
    rows = _problem_rows(run)
    if rows.height:
        sides = len(run.sides)
        yield grid(
            "problems-table",
            "Problems, the lowest mean pass rate first",
            [
                *names("problem", "suite"),
                *numbers("mean pass rate", "models solving it", "flipping", "lowest cost of pass"),
            ],
            (_problem(run, row, sides) for row in rows.iter_rows(named=True)),
            of="problem_frontier",
        )
    flaky = run.scan("validator_noise").filter(pl.col("flaky"), pl.col("test").is_not_null()).collect()
    if flaky.height:
        yield grid(
            "flaky-table",
            "Flaky tests: some validations of the same files passed and others did not",
            [*names("problem", "test", "validated"), *numbers("passes", "runs"), *names("left out of verdicts")],
            (
                [
                    *(text(row[name]) for name in ("oid", "test", "validated")),
                    *(count(row[name]) for name in ("passes", "runs")),
                    text("yes" if row["excluded"] else "no"),
                ]
                for row in flaky.sort("oid", "test", "validated").iter_rows(named=True)
            ),
            of="validator_noise",
        )


def _problem_rows(run: ReportedRun) -> pl.DataFrame:
    flips = (
        run.scan("problem_statistics")
        .group_by("oid")
        .agg(flipping=((pl.col("c") > 0) & (pl.col("c") < pl.col("n"))).sum())
    )
    suites = run.scan("problems").select("oid", "suite")
    rows = run.scan("problem_frontier").join(flips, on="oid", how="left").join(suites, on="oid", how="left")
    return rows.sort("mean_pass_rate", "oid", nulls_last=True).collect()


def _problem(run: ReportedRun, row: Row, sides: int) -> list[Cell]:
    link = next((link for (_, _, oid), link in run.case_links.items() if oid == row["oid"]), "")
    return [
        Cell(text(row["oid"]).text, link=link),
        text(row["suite"]),
        figure(row["mean_pass_rate"], number(row["mean_pass_rate"])),
        count(row["models_solving"]),
        figure(row["flipping"], f"{row['flipping'] or 0:,} of {sides:,}"),
        figure(row["cost_of_pass"], dollars(row["cost_of_pass"])),
    ]


def outcomes(run: ReportedRun) -> Iterator[Grid]:
    """How attempts ended, per model."""
    rows = run.outcome_counts
    if rows.is_empty():
        return
    statuses = rows["status"].unique().sort().to_list()
    wide = rows.group_by("model", "tier").agg(
        *(pl.col("len").filter(pl.col("status") == status).sum().alias(status) for status in statuses),
        undecided=pl.col("len").filter(pl.col("passed").is_null()).sum(),
        validators=pl.col("validator").drop_nulls().unique().sort().str.join(", "),
        fidelities=pl.col("fidelity").drop_nulls().unique().sort().str.join(", "),
    )
    yield grid(
        "outcomes-table",
        "Attempts by how their validation ended",
        [
            *side_columns(run),
            *numbers(*(status.replace("_", " ") for status in statuses), "undecided"),
            *names("decided by", "fidelity"),
        ],
        (
            [
                *side(run, row),
                *(count(row[name]) for name in (*statuses, "undecided")),
                text(row["validators"]),
                text(row["fidelities"]),
            ]
            for row in wide.sort("model", "tier").iter_rows(named=True)
        ),
        of="outcomes",
    )


def checks(run: ReportedRun) -> Iterator[Grid]:
    """The checks, those that did not pass first, then refused rows and files."""
    if run.checks:
        order = sorted(run.checks, key=lambda check: (check.passed, not check.error))
        yield grid(
            "checks-table",
            "Checks of this run",
            [*names("check"), Column("result", "verdict"), *names("what it found")],
            (
                [
                    text(check.name),
                    text("passed" if check.passed else "failed" if check.error else "warning"),
                    text(check.message),
                ]
                for check in order
            ),
        )
    refused, total = pl.collect_all(
        [run.scan("quarantine").drop("raw").head(_MAX_QUARANTINE), run.scan("quarantine").select(pl.len())]
    )
    if refused.height:
        yield grid(
            "quarantine-table",
            "Refused rows",
            [*names("file"), *numbers("line"), *names("kind", "reason")],
            (
                [text(row["source_file"]), count(row["line"]), text(row["kind"]), text(row["reason"])]
                for row in refused.iter_rows(named=True)
            ),
            of="quarantine",
            total=total.item(),
        )


def inputs(run: ReportedRun) -> Iterator[Grid]:
    """The files that were read, and their hashes."""
    rows = run.table("sources").sort("source_file", "model", nulls_last=True)
    if rows.is_empty():
        return
    yield grid(
        "inputs-table",
        "Input files",
        [*names("file", "model", "status"), *numbers("rows", "accepted", "refused"), *names("format", "SHA-256")],
        (
            [
                *(text(row[name]) for name in ("source_file", "model", "status")),
                *(count(row[name]) for name in ("rows", "accepted", "quarantined")),
                text(row["format"]),
                text(row["sha256"]),
            ]
            for row in rows.iter_rows(named=True)
        ),
        of="sources",
    )
