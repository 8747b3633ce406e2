"""Packages that neither a problem nor its fix brings: where the environment lacks one, nothing can be judged."""

import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePosixPath

from touchstone.validation.protocol import Report

# As Python and Node say it; a name that starts with a dot or a slash is a file of the project.
_MISSING = re.compile(r"(?:No module named|Cannot find (?:module|package)) ['\"]?([@\w][\w@-]*)")
_PLUGIN = re.compile(r"No module named '((?:pytest_|anyio|trio)\w*)")
# Of Python 2's standard library, those whose names are unlike any of today's.
_OLD_MODULES = ("__builtin__", "cPickle", "commands", "cStringIO", "HTMLParser", "httplib", "StringIO", "urlparse")


def missing_package(baseline: Report, report: Report, reference: Report | None, files: Iterable[str]) -> str | None:
    """The package for lack of which alone both the unmodified problem and the fix fail; None if there is none.

    The environment has all that is needed if a reference fix passes. A name that is like that of one of the problem's
    `files`, or of a module of the standard library of any time, is a mistake to be repaired, not a package.

    >>> lost = Report("no_report", "full", note="exit code 1: python: No module named pytest")
    >>> missing_package(lost, lost, None, ["shop/price.py"]), missing_package(lost, lost, None, ["pytest.py"])
    ('pytest', None)
    """
    before = set().union(*map(_missing, _failures(baseline)))
    if not before or (reference is not None and reference.status == "passed"):
        return None
    own = {PurePosixPath(part).stem.casefold() for path in files for part in path.split("/")}
    known = own.union(map(str.casefold, (*sys.stdlib_module_names, *_OLD_MODULES)))
    packages = {name for name in before if not get_close_matches(name.casefold(), known, n=1, cutoff=0.8)}
    each = [_missing(failure) & packages for failure in _failures(report)]
    return min(set().union(*each)) if each and all(each) else None


def _failures(report: Report) -> list[str]:
    if report.status == "no_report":
        return [report.note]
    return [str(found) for found in report.diagnostics if found.severity == "error"]


def _missing(failure: str) -> set[str]:
    return set(_MISSING.findall(failure))


def missing_plugin(message: str) -> str | None:
    """What to install, if tests could not be imported for lack of a plugin of pytest."""
    found = _PLUGIN.search(message)
    return f"the tests import {found[1]}, which is not installed in its environment" if found else None
