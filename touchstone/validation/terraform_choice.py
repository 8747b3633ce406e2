"""Which validator judges Terraform files: Terraform itself where it can, else the static checker.

One choice for all problems of a run, made before the first fix is validated, so that no figure mixes the two.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from touchstone.config.validation import ValidationSettings
from touchstone.progress import report_warning
from touchstone.validation.protocol import Report
from touchstone.validation.registry import DEFAULT_VALIDATORS, language_of
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Target, Targets

LANGUAGE = "terraform"
_TERRAFORM, _STATIC = "terraform", DEFAULT_VALIDATORS[LANGUAGE]
# The first problem tells most: where its providers are missing, trying hundreds of others would be a waste.
_BATCHES = (1, 8, 64, 512)


def choose_terraform_validator(
    problems: Iterable[Mapping[str, Any]], clones_dir: Path | None, session: ValidationSession
) -> ValidationSettings:
    """The session's settings with `terraform` if it works here and judges every unmodified problem offline, else `hcl`.

    `problems` are all rows of the problems table. A configured validator is not questioned.
    """
    settings = session.settings
    rows = [row for row in problems if is_terraform(row)]
    # No warning if Terraform is missing: that is the usual case.
    if LANGUAGE in settings.validators or not rows or not session.available(_TERRAFORM).usable:
        return settings
    # As Terraform would judge them: the static checker has no target for a warning.
    chosen = settings.model_copy(update={"validators": {**settings.validators, LANGUAGE: _TERRAFORM}})
    targets = Targets(clones_dir, chosen).find(rows).values()
    unable = _first_unable([target for target in targets if isinstance(target, Target)], session)
    if unable is None:
        return chosen
    target, report = unable
    reason = f"terraform cannot judge problem {target.problem.oid}: {report.note}"
    report_warning(f"Terraform files are judged by the static checker '{_STATIC}', because {reason}")
    return settings


def is_terraform(row: Mapping[str, Any]) -> bool:
    """Whether a row of the problems table is about a Terraform file."""
    return language_of(row.get("language"), row.get("filename") or "") == LANGUAGE


def _first_unable(targets: Sequence[Target], session: ValidationSession) -> tuple[Target, Report] | None:
    """The first problem that Terraform cannot judge, with its report."""
    start = 0
    for size in (*_BATCHES, len(targets)):
        batch = targets[start : start + size]
        start += size
        if (unable := _unable(batch, session)) is not None:
            return unable
    return None


def _unable(targets: Sequence[Target], session: ValidationSession) -> tuple[Target, Report] | None:
    """The same for some problems: as they are, and if they fail, with only the resources of the broken file.

    Terraform stops at a syntax error or a duplicate before it looks for providers: it could judge the problem, and none
    of its fixes.
    """
    reports = _reports([(target, None) for target in targets], session)
    failed = [
        (target, _resources(report))
        for target, report in zip(targets, reports, strict=True)
        if report.status == "failed" and report.declared is not None
    ]
    again = _reports(failed, session)
    tried = [*zip(targets, reports, strict=True), *zip([target for target, _ in failed], again, strict=True)]
    return next((pair for pair in tried if pair[1].status == "validator_unavailable"), None)


def _reports(wanted: Sequence[tuple[Target, bytes | None]], session: ValidationSession) -> list[Report]:
    requests = [session.request(target, content) for target, content in wanted]
    reports = session.reports(requests, "trying Terraform on the problems") if requests else {}
    return [reports[request.key].report for request in requests]


def _resources(report: Report) -> bytes:
    """An empty block for every resource and data source that a module declares: Terraform needs their providers."""
    addresses = (address for address in report.declared or () if address[0] in ("resource", "data"))
    headers = (" ".join([address[0], *map(json.dumps, address[1:])]) for address in addresses)
    return "".join(f"{header} {{\n}}\n" for header in headers).encode()
