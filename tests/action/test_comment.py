"""One comment of a pull request or merge request: created, then updated; never a reason to fail."""

import io
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.action.comments_api import BOT, CommentsApi, comments_api
from tests.action.job import ACTION, TOKEN, Job

MARKER = "<!-- touchstone: touchstone -->\n"
GITHUB = "/repos/owner/repository/issues"
GITLAB = "/projects/5/merge_requests/7/notes"


@pytest.fixture
def api() -> Iterator[CommentsApi]:
    with comments_api() as server:
        yield server


class Commenter:
    """The last step alone, on a report."""

    def __init__(self, root: Path, api: CommentsApi) -> None:
        self.report = root / "report.md"
        self.environment = Job(root, api=api.url).environment
        self.environment |= {"TOUCHSTONE_CI_REPORT": str(self.report), "TOUCHSTONE_CI_TOKEN": TOKEN}

    def on_gitlab(self, api: CommentsApi) -> None:
        kept = {name: value for name, value in self.environment.items() if not name.startswith("GITHUB_")}
        job = {"CI_API_V4_URL": api.url, "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7"}
        self.environment = kept | job

    def __call__(self, report: str, **environment: str) -> str:
        """What the step prints, run in this process: to start another takes longer than the step."""
        self.report.write_text(report)
        printed = io.StringIO()
        with (
            patch.object(sys, "path", [str(ACTION), *sys.path]),
            patch.dict(os.environ, self.environment | environment, clear=True),
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
            runpy.run_path(str(ACTION / "comment.py"))["main"]()
        return printed.getvalue()

    def apart(self, report: str, **environment: str) -> str:
        """What the step prints as the program that it is; it must succeed."""
        self.report.write_text(report)
        done = subprocess.run(
            [sys.executable, ACTION / "comment.py"],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout + done.stderr


@pytest.fixture
def comment(tmp_path: Path, api: CommentsApi) -> Commenter:
    return Commenter(tmp_path, api)


def test_the_whole_action_creates_one_comment_and_updates_it(tmp_path: Path, api: CommentsApi) -> None:
    job = Job(tmp_path, api=api.url)
    first = job.run(mode="compare")
    assert api.bodies() == [MARKER + first.report]
    second = job.run(mode="nonsense")
    assert api.bodies() == [MARKER + second.report]
    assert (first.code, second.code) == (2, 2), "the comment does not change the exit code"
    assert api.tokens == {f"Bearer {TOKEN}"}
    job.run(mode="compare", comment="false")
    assert api.bodies() == [MARKER + second.report]


def test_github_creates_then_updates(comment: Commenter, api: CommentsApi) -> None:
    assert comment.apart("one\n") == "created the comment\n"
    assert comment.apart("two\n") == "updated the comment\n"
    assert api.bodies() == [f"{MARKER}two\n"]
    written = [each for each in api.requests if each[0] != "GET"]
    assert written == [("POST", f"{GITHUB}/7/comments"), ("PATCH", f"{GITHUB}/comments/100")]


def test_gitlab_creates_then_updates(comment: Commenter, api: CommentsApi) -> None:
    comment.on_gitlab(api)
    api.me = {"username": "project_7_bot"}
    assert comment("one\n") == "created the comment\n"
    assert comment("two\n") == "updated the comment\n"
    assert api.bodies() == [f"{MARKER}two\n"]
    assert [each for each in api.requests if each[0] != "GET"] == [("POST", GITLAB), ("PUT", f"{GITLAB}/100")]
    assert api.tokens == {TOKEN}


def test_gitlab_without_a_token_says_so(comment: Commenter, api: CommentsApi) -> None:
    comment.on_gitlab(api)
    assert comment("one", TOUCHSTONE_CI_TOKEN="") == "no comment: this is no pull request, or there is no token\n"
    assert api.requests == []


def test_the_comment_is_found_among_many(comment: Commenter, api: CommentsApi) -> None:
    for number in range(120):
        api.add(f"comment {number}")
    api.add(f"{MARKER}old")
    comment("new\n")
    assert (len(api.comments), api.bodies()[-1]) == (121, f"{MARKER}new\n")


@pytest.mark.parametrize(
    ("body", "author"),
    [
        (f"> {MARKER}quoted", BOT),
        (f"{MARKER}forged", {"login": "somebody", "type": "User"}),
        ("<!-- touchstone: other -->\nof another job", BOT),
    ],
    ids=["quoted", "of somebody else", "of another name"],
)
def test_other_comments_stay_as_they_are(
    comment: Commenter, api: CommentsApi, body: str, author: dict[str, str]
) -> None:
    api.add(body, author)
    comment("report\n")
    assert api.bodies() == [body, f"{MARKER}report\n"]


@pytest.mark.parametrize(("method", "status"), [("POST", 403), ("GET", 403), ("GET", 401), ("POST", 500), ("GET", 302)])
def test_a_refusal_is_a_warning(comment: Commenter, api: CommentsApi, method: str, status: int) -> None:
    api.denied = {method: status}
    said = comment("report")
    assert said.startswith(f"::warning::the report was not posted as a comment (HTTP {status}")
    assert ("pull-requests: write" in said) == (status in (401, 403))
    assert said.count("\n") == 1
    assert "/elsewhere" not in [path for _, path in api.requests], "the token stays with the API"


def test_no_server_is_a_warning(comment: Commenter) -> None:
    said = comment("report", GITHUB_API_URL="http://127.0.0.1:9")
    assert said.startswith("::warning::the report was not posted as a comment (URLError: ")


@pytest.mark.parametrize("event", ["push", "schedule", "pull_request_target"])
def test_only_pull_requests_are_commented(comment: Commenter, api: CommentsApi, event: str) -> None:
    comment("report", GITHUB_EVENT_NAME=event)
    assert api.requests == []


def test_a_long_report_is_shortened(comment: Commenter, api: CommentsApi) -> None:
    comment.apart("<details>\n" + "a line – of the report\n" * 5000)
    (body,) = api.bodies()
    assert len(body) < 65_536
    assert body.endswith("report\n</details>\n\n… shortened; the whole report is an artifact of the job\n")
