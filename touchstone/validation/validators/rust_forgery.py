"""Constructs with which a Rust fix could forge the report of its tests, found in its text.

A fix that introduces one cannot pass, unless the original file or the reference fix has it too. Comments and literals
do not count. What a macro puts together from parts is not found.
"""

import re

from touchstone.validation.fixes.rust_tests import without_literals
from touchstone.validation.protocol import Problem, Tree

_ASSERTIONS = r"(?:debug_)?assert(?:_eq|_ne|_matches)?"
_CONSTRUCTS = {
    # Replacing `main`, functions of the C library or parts of the program.
    "no_main": re.compile(r"\bno_main\b"),
    "no_mangle": re.compile(r"\bno_mangle\b"),
    "export_name": re.compile(r"\bexport_name\b"),
    "link_section": re.compile(r"\blink_section\b"),
    "extern": re.compile(r"\bextern\b"),
    "asm": re.compile(r"\b(?:global_|naked_)asm\b|\basm ?!|\barch ?:: ?asm\b"),
    "dlsym": re.compile(r"\bdlsym\b"),
    # Replacing what the tests assert with: any use of these names but a call.
    "an assertion macro": re.compile(
        rf"\b{_ASSERTIONS}\b(?! ?!)|\bmacro_rules ?! ?(?:r\#)?(?:{_ASSERTIONS}\b|panic\b|\$)|\bas (?:r\#)?panic\b"
    ),
}
# Deciding that whatever is compared is equal. Deriving, requiring, importing and calling it are harmless.
_EQUALITY = re.compile(r"\bPartialEq\b(?P<renamed> as\b)?")
_HARMLESS_BEFORE = re.compile(
    r"(?:(?<!:):(?!:) ?|\+ ?|\bas |\bderive ?\([^()]*|\buse [^;()!]*)(?:\w+ ?:: ?)*\Z",
)
# Where a macro implements a trait that it is given, a bound may be how it is given.
_GIVEN_TRAIT = re.compile(r"\bimpl\b ?(?:<[^>]*> ?)?(?:\$\w+ ?:: ?)*\$[\w(][^;{}]*? for\b")
_HARMLESS_BESIDE_MACRO = re.compile(r"(?:\bderive ?\([^()]*|\buse [^;()!]*)(?:\w+ ?:: ?)*\Z")
_LOOK_BACK = 200
_MOST_EQUALITIES = 1000


def forgery_constructs(tree: Tree, problem: Problem) -> str:
    """The constructs that a replaced file contains and neither its original nor the reference fix."""
    found: set[str] = set()
    for path, content in tree.changed.items():
        original = tree.root / path
        before = original.read_bytes() if original.is_file() else b""
        found |= _constructs(path, content) - _constructs(path, before)
    if found and problem.reference_fix:
        found -= _constructs(problem.path, problem.reference_fix.encode())
    return ", ".join(sorted(found))


def _constructs(path: str, content: bytes) -> set[str]:
    text = content.decode("utf-8", "replace")
    # Any file can be included as code, but only in Rust's own is it known where a comment begins.
    code = " ".join((without_literals(text) if path.endswith(".rs") else text).split())
    found = {name for name, pattern in _CONSTRUCTS.items() if pattern.search(code)}
    return found | {"PartialEq"} if _implements_equality(code) else found


def _implements_equality(code: str) -> bool:
    harmless = _HARMLESS_BESIDE_MACRO if _GIVEN_TRAIT.search(code) else _HARMLESS_BEFORE
    for number, found in enumerate(_EQUALITY.finditer(code)):
        before = code[max(0, found.start() - _LOOK_BACK) : found.start()]
        if found["renamed"] or number > _MOST_EQUALITIES or not harmless.search(before):
            return True
    return False
