"""The report as Markdown: it fits the comment of a pull request, and foreign text in it is inert."""

from pathlib import Path

from tests.publish.report.results import figure, pair, write_results
from touchstone.publish.report import report_markdown

# What GitHub takes for a comment.
MAX_COMMENT = 65_536


def test_the_paragraph_comes_first_then_the_leaderboard(tmp_path: Path) -> None:
    text = report_markdown(
        write_results(
            tmp_path,
            pass_at_k=[figure("a", 0.7), figure("b", 0.5)],
            model_comparison=[pair("b", "a", "better", pairs=1)],
        )
    )
    blocks = text.split("\n\n")
    assert blocks[0] == f"### Touchstone report: {tmp_path.name}"
    assert blocks[1].startswith(
        "a repairs 70 of 100 problems at the first try (probably 60 to 80), clearly ahead of b."
    )
    assert blocks[2].startswith("a is best: pass@1 0.700 (95% CI 0.600 to 0.800, 40 problems); it is better than b")
    assert blocks[3] == r"#### pass@k: mean over problems \[95% confidence interval\]"
    assert blocks[4].splitlines()[2] == r"| a | 0.700 \[0.600, 0.800\] | 40/40 | wilson |"


def test_a_large_run_is_cut_with_the_rest_stated(tmp_path: Path) -> None:
    names = [f"{place:03}{'x' * 97}" for place in range(134)]
    cases = [{"model": name, "tier": name, "oid": name, "kind": "regression", "delta": -0.5} for name in names]
    text = report_markdown(
        write_results(
            tmp_path,
            pass_at_k=[figure(name, 0.5) for name in names],
            model_comparison=[pair(names[0], name, "inconclusive") for name in names[1:]],
            regressions=cases,
            tiers=[{"model": name, "tier": name, "composite_median": 0.5} for name in names],
        )
    )
    assert 20_000 < len(text) < MAX_COMMENT
    assert "… and 113 more" in text and "#### Cases that changed" in text


def test_the_longest_texts_still_fit(tmp_path: Path) -> None:
    names = [f"{place:03}{chr(27) * 97}" for place in range(50)]
    cases = [{"model": name, "tier": name, "oid": name, "kind": kind} for name in names for kind in ("new", "removed")]
    text = report_markdown(write_results(tmp_path, pass_at_k=[figure(name, 0.5) for name in names], regressions=cases))
    assert len(text) < MAX_COMMENT and text.rstrip().endswith("the whole report is report.html in the output folder.")


def test_markup_mentions_and_links_are_text(tmp_path: Path) -> None:
    text = report_markdown(write_results(tmp_path, pass_at_k=[figure("<img src=x>|@me `x` www.a.b", 0.5)]))
    assert r"\<img src=x\>\|@&#8203;me \`x\` www&#8203;.a.b" in text


def test_no_data_at_all(tmp_path: Path) -> None:
    assert "There are no figures: no attempt was evaluated." in report_markdown(write_results(tmp_path))
