"""The report as a part of publishing, and the command: when it is drawn, where it lies, and what a failure costs."""

from pathlib import Path

import pytest

from tests.conftest import Command, Folder, call_here, copy_of
from tests.pipelines.test_run import evaluate
from tests.publish.report.pages import Page
from touchstone.tables.checks import CHECKS

SENTENCE = "m is the only model: pass@1 0.250 (95% CI "


@pytest.fixture(scope="module")
def published(finished: Folder, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A small evaluation after a run that drew its report: to be read only."""
    folder = copy_of(finished, tmp_path_factory.mktemp("published") / "copy")
    folder.configure(publish={"report": True})
    done = call_here("run", "--config", folder.config)
    *_, sentence, command = done.stdout.splitlines()
    assert sentence.startswith(SENTENCE) and command.startswith("to read the report: touchstone report --open")
    return folder


def report_of(folder: Folder) -> Path:
    return folder.output / "report.html"


def test_a_run_publishes_its_report_with_the_rest(published: Folder) -> None:
    assert report_of(published).readlink() == Path(".store/current/report.html")
    made = Page(report_of(published).read_text())
    assert "m is the only model: pass@1 0.250" in made.text
    assert len(made.rows("checks-table")) == len(CHECKS), "the gate's check is among them"
    assert any(row[0] == "problems file (SHA-256)" for row in made.rows("versions-table"))


def test_the_command_finds_the_published_report_and_prints_markdown(published: Folder, touchstone: Command) -> None:
    done = touchstone("report", "--data", published.output)
    assert (done.returncode, done.stdout.strip()) == (0, str(report_of(published)))
    done = touchstone("report", "--data", published.output, "--format", "markdown")
    assert done.stdout.startswith("### Touchstone report: copy\n\nm repairs 25 of 100 problems at the first try")


def test_a_run_that_is_up_to_date_ends_with_the_sentence_and_the_command_that_opens_the_report(
    published: Folder, touchstone: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(published.root)
    *_, sentence, command = touchstone("run").stdout.splitlines()
    assert sentence.startswith(SENTENCE) and sentence.endswith("checks passed")
    assert command == "to read the report: touchstone report --open"
    monkeypatch.chdir(published.root.parent)
    done = touchstone("run", "--config", published.config)
    assert done.stdout.splitlines()[-1] == "to read the report: touchstone report --open --data copy/out"


def test_a_copy_elsewhere_says_the_same(published: Folder, touchstone: Command, tmp_path: Path) -> None:
    copy = tmp_path / "copy.html"
    done = touchstone("report", "--data", published.output, "--save-to", copy)
    assert (done.returncode, done.stdout.strip()) == (0, str(copy))
    assert copy.read_text() == report_of(published).read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere"], "nowhere: no results here; give the output folder of a run"),
        (["--format", "markdown", "--open"], "--open is for the page: leave --format markdown out"),
        (["--save-to", "a.tex", "--open"], "--open is for the page: leave --format latex out"),
        (["--save-to", "."], ".: not a file"),
    ],
)
def test_wrong_use_is_one_line(published: Folder, touchstone: Command, arguments: list[str], message: str) -> None:
    done = touchstone("report", "--data", published.output, *arguments)
    assert (done.returncode, done.stderr) == (2, f"error: {message}\n")


@pytest.mark.services
def test_only_a_change_draws_it_again_and_false_removes_it(published: Folder, tmp_path: Path) -> None:
    first = report_of(published).stat()
    assert evaluate(published).exit_code == 0
    assert report_of(published).stat().st_ino == first.st_ino, "nothing changed, so the file is the same"
    folder = copy_of(published, tmp_path / "copy")
    folder.fixes("m", "oid,iteration_id,plausible_fix\na,1,true\na,2,true\nb,1,false\nb,2,false\n")
    assert evaluate(folder).exit_code == 0
    assert "pass@1 0.500" in Page(report_of(folder).read_text()).text
    folder.configure(publish={"report": False})
    assert evaluate(folder).exit_code == 0
    assert not report_of(folder).is_symlink()


@pytest.mark.services
def test_a_report_that_cannot_be_drawn_is_one_warning_and_no_loss(
    evaluated: Folder, touchstone: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = evaluated
    (folder.output / "summary_pass_at_k.csv").unlink()

    def fail(*_: object) -> str:
        raise RuntimeError("no\nfonts")

    folder.configure(publish={"report": True})
    monkeypatch.setattr("touchstone.publish.report.stage.report_html", fail)
    done = touchstone("run", "--config", folder.config)
    [warning] = [line for line in done.stderr.splitlines() if "warning" in line]
    assert "there is no report.html: no fonts; the results are complete" in warning
    assert done.returncode == 0
    assert (folder.output / "summary_pass_at_k.csv").is_file() and not report_of(folder).exists()


@pytest.mark.services
def test_a_run_that_a_gate_stopped_is_reported_on_demand(folder: Folder, touchstone: Command, tmp_path: Path) -> None:
    folder.fixes("m", "oid,iteration_id,fixed_code\na,1,x\nb,1,y\n")
    folder.configure(clones_dir="nowhere")
    assert evaluate(folder).stopped
    page = tmp_path / "draft.html"
    done = touchstone("report", "--data", folder.output, "--draft", "--save-to", page)
    assert done.returncode == 0, done.stderr
    made = Page(page.read_text())
    assert "There are no figures: no attempt was evaluated." in made.text
    assert ["outcomes.undecided_share", "failed"] in [row[:2] for row in made.rows("checks-table")]
    assert not any(row[0].startswith("pass_at_k") for row in made.rows("checks-table")), "it did not get that far"
