"""The table of lines and the table of changes, from the figures of snapshots."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from touchstone.storage.snapshots import Snapshot
from touchstone.tables import TABLES, conform, violations
from touchstone.trends.series import Trends, find_trends

QUIET = [0.60, 0.62, 0.61, 0.63, 0.60, 0.62]


def day(night: int) -> str:
    return (datetime(2026, 1, 1) + timedelta(days=night)).strftime("%Y-%m-%dT00:00:00Z")


def snapshot(night: int, attempts: str, settings: Mapping[str, str]) -> Snapshot:
    name, rest = f"night-{night:02d}", {"config_hash": str(settings), "settings": settings, "attempts": {"m": attempts}}
    return Snapshot(name, Path("nowhere"), day(night), **rest)  # type: ignore[arg-type]


def history(
    values: Sequence[float | None], nights: Sequence[int] | None = None, attempts: Sequence[str] = (), changed: int = 99
) -> tuple[pl.LazyFrame, list[Snapshot]]:
    """pass@1 of one model on some nights, with intervals of ±0.04; a setting is another one from `changed` on."""
    rows, snapshots = [], []
    for place, (night, value) in enumerate(zip(nights or range(len(values)), values, strict=True)):
        settings = {"validation.limits.seconds": "60" if night < changed else "10"}
        snapshots.append(snapshot(night, attempts[place] if attempts else str(night), settings))
        ends = {
            "pass_at_k": value,
            "ci_low": value and value - 0.04,
            "ci_high": value and value + 0.04,
            "eligible": 100.0,
        }
        rows += [
            (snapshots[-1].id, day(night), "pass_at_k", "m", "T0", "1", name, figure) for name, figure in ends.items()
        ]
    return pl.LazyFrame(rows, schema=TABLES["history"].dtypes, orient="row"), snapshots


def found(*args: object, pins: Mapping[str, str] | None = None, **more: object) -> Trends:
    trends = find_trends(*history(*args, **more), pins or {})  # type: ignore[arg-type]
    for name, frame in (("trends", trends.trends), ("change_points", trends.change_points)):
        assert not violations(conform(frame.lazy(), TABLES[name]), TABLES[name])
    return trends


def test_a_change_is_dated_sized_and_explained() -> None:
    trends = found([*QUIET, *(value - 0.2 for value in QUIET)], changed=6, pins={"baseline": "night-02"})
    (change,) = trends.change_points.to_dicts()
    assert (change["snapshot"], change["previous_snapshot"]) == ("night-06", "night-05")
    assert change["sentence"] == "pass@1 fell by 20.0 points, from 61.3% to 41.3%"
    assert change["changed"] == "setting validation.limits.seconds 60 → 10"
    assert (change["nights_before"], change["nights_after"], change["seen_in"]) == (6, 6, "night-07")
    assert trends.trends["level"].round(3).to_list() == [0.613] * 6 + [0.413] * 6
    assert trends.trends.drop_nulls("pinned_as").select("snapshot", "pinned_as").rows() == [("night-02", "baseline")]


def test_without_a_recorded_difference_only_the_attempts_changed() -> None:
    changes = found([*QUIET, *(value - 0.2 for value in QUIET)]).change_points
    assert changes["changed"].to_list() == ["nothing but the attempts"]


def test_a_gap_is_where_nothing_ran() -> None:
    trends = found(QUIET, [0, 1, 2, 6, 7, 8]).trends
    assert trends.filter("after_gap")["snapshot"].to_list() == ["night-06"]


def test_repeated_attempts_are_one_observation() -> None:
    """Six nights of the same files say as much as one; as many nights of new files would show a change."""
    values = [0.60] * 6 + [0.52] * 6
    assert found(values, attempts="aaaaaabbbbbb").change_points.is_empty()
    assert found(values).change_points.height == 1


def test_the_same_attempts_with_another_figure_need_no_test() -> None:
    (change,) = found([0.60, 0.60, 0.55], attempts="aaa", changed=2).change_points.to_dicts()
    assert (change["snapshot"], change["p_value"], change["same_attempts"]) == ("night-02", 0, True)
    # Within a standard error, such as the ruling on one attempt.
    assert found([0.60, 0.60, 0.59], attempts="aaa").change_points.is_empty()


def test_what_is_undefined_is_a_row_without_a_test() -> None:
    trends = found([None, *QUIET, None, 0.61])
    assert trends.change_points.is_empty() and trends.trends["value"].null_count() == 2
    assert trends.trends["level"].null_count() == 0
    assert found([]).trends.is_empty()


def test_an_earlier_version_stated_no_settings() -> None:
    frame, snapshots = history([*QUIET, *(value - 0.2 for value in QUIET)], changed=6)
    old = [Snapshot(each.id, each.folder, each.made_at, config_hash=each.config_hash) for each in snapshots]
    (change,) = find_trends(frame, old, {}).change_points.to_dicts()
    assert change["changed"] == "settings, unknown which (a snapshot of an earlier version)"
