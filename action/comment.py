"""Posts the report as one comment of the pull request or merge request, or updates that comment.

Never fails the job: what keeps it from commenting is a warning. Needs only the standard library.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci import announce, report_name, setting, shortened, use_utf8

# GitHub takes 65,536 characters, GitLab more.
MAX_BODY = 65_000
PAGE_SIZE = 100
MAX_PAGES = 100
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Thread:
    """The comments of one pull request: where they are listed and created, where one is updated, and how."""

    api: str
    comments: str
    comment: str
    update: str
    author: str
    login: str
    token: dict[str, str]


def find_thread(environment: Mapping[str, str]) -> Thread | None:
    """The pull request or merge request of this job, if there is one."""
    token = setting(environment, "TOKEN")
    if environment.get("GITHUB_EVENT_NAME") == "pull_request":
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        issues = f"/repos/{environment['GITHUB_REPOSITORY']}/issues"
        return Thread(
            api=environment.get("GITHUB_API_URL", "https://api.github.com"),
            comments=f"{issues}/{int(event['pull_request']['number'])}/comments",
            comment=f"{issues}/comments",
            update="PATCH",
            author="user",
            login="login",
            token={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
        )
    # A job of GitLab has a token for notes only if somebody made one.
    if environment.get("CI_MERGE_REQUEST_IID") and token:
        request = f"/projects/{environment['CI_PROJECT_ID']}/merge_requests/{int(environment['CI_MERGE_REQUEST_IID'])}"
        return Thread(
            api=environment["CI_API_V4_URL"],
            comments=f"{request}/notes",
            comment=f"{request}/notes",
            update="PUT",
            author="author",
            login="username",
            token={"PRIVATE-TOKEN": token},
        )
    return None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: it would take the token to another place."""

    def redirect_request(self, *_: Any) -> None:
        return None


def ask(thread: Thread, method: str, path: str, body: str | None = None) -> Any:
    """One request to the API; what it answers."""
    request = urllib.request.Request(
        thread.api + path,
        method=method,
        data=None if body is None else json.dumps({"body": body}).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "touchstone", **thread.token},
    )
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)


def post(thread: Thread, marker: str, report: str) -> str:
    """Create the comment, or update the one that an earlier run made; what was done."""
    body = shortened(f"{marker}\n{report}", MAX_BODY, "… shortened; the whole report is an artifact of the job")
    earlier = next(_own_comments(thread, marker), None)
    if earlier is None:
        ask(thread, "POST", thread.comments, body)
        return "created the comment"
    ask(thread, thread.update, f"{thread.comment}/{int(earlier['id'])}", body)
    return "updated the comment"


def _own_comments(thread: Thread, marker: str) -> Iterator[dict[str, Any]]:
    """Our comments: they begin with the marker. One of somebody else could be edited by them later."""
    me = _own_login(thread)
    for page in range(1, MAX_PAGES + 1):
        found = ask(thread, "GET", f"{thread.comments}?per_page={PAGE_SIZE}&page={page}")
        for each in found:
            author = each.get(thread.author) or {}
            ours = author.get(thread.login) == me if me else author.get("type") == "Bot"
            if ours and str(each.get("body", "")).startswith(f"{marker}\n"):
                yield each
        if len(found) < PAGE_SIZE:
            return


def _own_login(thread: Thread) -> str | None:
    """The owner of the token. The token that GitHub gives a job has none: its comments are those of a bot."""
    try:
        return str(ask(thread, "GET", "/user")[thread.login])
    except urllib.error.HTTPError as error:
        if error.code in (403, 404):
            return None
        raise


def explain(error: Exception) -> str:
    """Why there is no comment, and what to do."""
    if not isinstance(error, urllib.error.HTTPError):
        return f"{type(error).__name__}: {error}"
    if error.code in (401, 403, 404):
        return (
            f"HTTP {error.code}: the token may not write comments; give the job `pull-requests: write` (GitHub) or "
            "the token the scope api (GitLab). Pull requests from forks may not comment"
        )
    return f"HTTP {error.code}"


def main() -> None:
    """The whole step."""
    report = Path(setting(os.environ, "REPORT"))
    if setting(os.environ, "COMMENT", "true") != "true" or not report.is_file():
        return
    try:
        thread = find_thread(os.environ)
        if thread is None:
            print("no comment: this is no pull request, or there is no token", file=sys.stderr)
            return
        print(post(thread, f"<!-- touchstone: {report_name(os.environ)} -->", report.read_text(encoding="utf-8")))
    except Exception as error:
        announce("warning", f"the report was not posted as a comment ({explain(error)})")


if __name__ == "__main__":
    use_utf8()
    main()
