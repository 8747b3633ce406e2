"""The section `audit` of the configuration, and the rules by which passes are audited.

The project's own rules are in `audit_rules.toml` beside this module, each with a text that it must find and one that it
must not; a user adds more by `audit.rules`. Matching belongs in `ingest.transcripts` and `audit.fixes`.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from touchstone.config.file import Section
from touchstone.errors import TouchstoneError

Severity = Literal["high", "low"]
Look = Literal["fix", "transcript", "files"]
_MAX_RULES_BYTES = 1 << 20
# Placeholders for an attempt's problem in a pattern.
_PLACEHOLDER = re.compile(r"\{(oid|owner|repo)\}")


class AuditSettings(Section):
    """How passes are audited. No flag changes a verdict."""

    rules: Path | None = None
    """TOML file with further [rules](defending.md#rules-of-your-own)."""
    transcripts: bool = True
    """Read the transcripts in logs and trajectories for the audit; otherwise only fixes are audited."""
    gate: Literal["warn", "error"] = "warn"
    """Whether a pass with a flag of severity `high` warns, or fails the run."""

    @property
    def all_rules(self) -> list[dict[str, Any]]:
        """All rules as plain data."""
        return [rule.model_dump() for rule in audit_rules(self)]


class AuditRule(Section):
    """One rule. It has a `pattern`, or names a `kind` of evidence that code looks for.

    `look` says where: in the lines that a `fix` adds, in what the model did (`transcript`), or in the paths of the
    `files` that a fix changes. A pattern about transcripts may use `{oid}`, `{owner}` and `{repo}`; a rule whose
    placeholder has no value for a problem is skipped there. With `not_own`, a line about a file that the model created
    itself is no finding.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")
    look: Look
    severity: Severity
    why: str = Field(min_length=1, max_length=300)
    pattern: str | None = Field(None, min_length=1)
    kind: str | None = None
    not_own: bool = False
    finds: str | None = None
    ignores: str | None = None

    @model_validator(mode="after")
    def _finds_what_it_says(self) -> Self:
        if (self.pattern is None) == (self.kind is None):
            raise ValueError("a rule has either a pattern or a kind")
        if self.pattern is None:
            return self
        try:
            pattern = self.compiled("acme__tool-1234")
        except re.error as error:
            raise ValueError(f"the pattern is not a regular expression: {error}") from None
        assert pattern is not None
        if self.finds is not None and not pattern.search(self.finds):
            raise ValueError(f"the pattern does not find {self.finds!r}")
        if self.ignores is not None and pattern.search(self.ignores):
            raise ValueError(f"the pattern finds {self.ignores!r}")
        return self

    def compiled(self, oid: str = "") -> re.Pattern[str] | None:
        """The pattern for a problem; None if it names something that the problem's id does not say."""
        named = names_in(oid)

        def value(match: re.Match[str]) -> str:
            return re.escape(named.get(match[1], ""))

        wanted = {match[1] for match in _PLACEHOLDER.finditer(self.pattern or "")}
        return _compiled(_PLACEHOLDER.sub(value, self.pattern or "")) if wanted <= named.keys() else None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def names_in(oid: str) -> dict[str, str]:
    """Names in an id: itself, if it is distinctive, and the repository if it is one of SWE-bench's.

    >>> names_in("swe_bench/django__django-11099")
    {'oid': 'django__django-11099', 'owner': 'django', 'repo': 'django'}
    >>> names_in("terminal-bench/hello-world")
    {}
    """
    last = oid.rpartition("/")[2]
    found = re.fullmatch(r"(?:instance_)?([\w.-]+?)__([\w.-]+?)-(?:\d+|[0-9a-f]{8,}.*)", last)
    named = {"owner": found[1], "repo": found[2]} if found else {}
    is_telling = len(last) >= 8 and bool(re.search(r"\d", last)) and bool(re.search(r"[-_/#.]", last))
    return {"oid": last, **named} if is_telling else named


class _Rules(Section):
    rule: list[AuditRule] = []


def own_rules() -> tuple[AuditRule, ...]:
    """The project's rules."""
    return _parsed((files("touchstone.config") / "audit_rules.toml").read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> tuple[AuditRule, ...]:
    return tuple(_Rules.model_validate(tomllib.loads(text)).rule)


def audit_rules(settings: AuditSettings) -> tuple[AuditRule, ...]:
    """All rules: the project's, then the user's."""
    return (*own_rules(), *(_rules_in(settings.rules) if settings.rules is not None else ()))


def _rules_in(path: Path) -> tuple[AuditRule, ...]:
    try:
        with path.open("rb") as file:
            rules = _parsed(file.read(_MAX_RULES_BYTES).decode())
    except OSError as error:
        raise TouchstoneError(f"audit.rules: {path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TouchstoneError(f"audit.rules: {path}: not TOML ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        place, what = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise TouchstoneError(f"audit.rules: {path}: {place}: {what}") from None
    names = [rule.name for rule in own_rules()]
    for rule in rules:
        if rule.kind is not None:
            raise TouchstoneError(f"audit.rules: {path}: {rule.name}: give a pattern; kinds are for Touchstone's rules")
        if rule.name in names:
            raise TouchstoneError(f"audit.rules: {path}: there is already a rule '{rule.name}'; choose another name")
        names.append(rule.name)
    return rules
