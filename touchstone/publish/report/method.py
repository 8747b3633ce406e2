"""How each figure was made: formulas, settings, versions and the hashes of the input files."""

from collections.abc import Iterator

from touchstone import __version__
from touchstone.publish.report.grids import Grid, grid, names, text
from touchstone.publish.report.run import ReportedRun
from touchstone.publish.report.trust_sections import inputs

# Figure, formula and table; docs/metrics.md has the same at length.
_FORMULAS = (
    (
        "pass@k",
        "1 - C(n - c, k) / C(n, k) per problem with n decided and c passed attempts, then the mean over problems; "
        "undefined where n < k",
        "pass_at_k",
    ),
    ("pass^k", "C(c, k) / C(n, k) per problem, then the mean over problems", "reliability_curve"),
    (
        "confidence interval",
        "the unit is the problem, or the cluster where problems share one, never the attempt; the method is named "
        "beside each figure",
        "pass_at_k",
    ),
    (
        "verdict",
        "a two-sided paired test of the differences per problem, adjusted for all pairs; otherwise no relevant "
        "difference (the adjusted interval lies within the margin), no evidence, or underpowered",
        "model_comparison",
    ),
    (
        "min. detectable effect",
        "the smallest true difference that the test finds with the configured power at the adjusted level",
        "model_comparison",
    ),
    ("composite score", "weighted mean of pass rate and judge's score per attempt; the tier's median", "tiers"),
    ("grade", "the band of the median composite score", "tiers"),
    ("uplift", "(composite median - that of the baseline tier) / that of the baseline tier", "tiers"),
    ("suite score", "passed cases / all cases; overall: the unweighted mean over suites", "suite_scores"),
    ("cost of pass", "mean cost / mean pass rate of decided attempts; infinite if nothing passes", "economics"),
    ("flip rate", "share of problems with several attempts that some attempts solve and others do not", "reliability"),
    (
        "regression",
        "a case whose score fell by more than the threshold; expected by chance: if attempts are assigned to the two "
        "runs at random",
        "regressions",
    ),
)


def method(run: ReportedRun) -> Iterator[Grid]:
    """Formulas, settings, versions and input files."""
    formulas = ([text(cell) for cell in row] for row in _FORMULAS)
    yield grid("formulas-table", "Formulas", names("figure", "formula", "table"), formulas)
    if run.settings:
        settings = ([text(key), text(value)] for key, value in run.table("settings").sort("key").iter_rows())
        yield grid("settings-table", "Settings", names("setting", "value"), settings, of="settings")
    versions = ([text(name), text(value)] for name, value in _versions(run).items())
    yield grid("versions-table", "Versions", names("what", "version"), versions)
    yield from inputs(run)


def _versions(run: ReportedRun) -> dict[str, str]:
    snapshot = run.snapshot
    if snapshot is None:
        return {"touchstone": __version__}
    kept = {name: value for name, value in snapshot.versions.items() if value}
    hashes = {"configuration (hash)": snapshot.config_hash, "problems file (SHA-256)": snapshot.inputs.get("problems")}
    return {"snapshot": snapshot.id, **kept, **{name: value for name, value in hashes.items() if value}}
