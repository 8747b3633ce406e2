"""Nesting limits: input that would overflow the parsers' stack and crash the process."""

import re

MAX_NESTING = 250
MAX_OPERATORS = 2_000

_SKIPPED_OR_BRACKET = re.compile(
    rb'#[^\n]*|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n$%]|\\.|\$(?!\{)|%(?!\{))*"|(?P<open>[\[({])|(?P<close>[\])}])', re.DOTALL
)
_OPERATOR_RUN = re.compile(
    rb"(?<![!-])(?:[!-]\s*){%d}|(?<!\*)(?:(?:\[\*\]|\.\*)(?:\.[\w-]+)*\s*){%d}" % (MAX_OPERATORS, MAX_OPERATORS)
)


def too_deep(data: bytes) -> int | None:
    """The offset at which nesting exceeds the limit, or None.

    Comments and strings without templates are skipped; brackets in heredocs count, which can only overestimate.
    """
    if data.count(b"{") + data.count(b"[") + data.count(b"(") > MAX_NESTING:
        depth = 0
        for match in _SKIPPED_OR_BRACKET.finditer(data):
            if match["open"]:
                depth += 1
                if depth > MAX_NESTING:
                    return match.start()
            elif match["close"] and depth:
                depth -= 1
    if data.count(b"!") + data.count(b"-") + data.count(b"*") > MAX_OPERATORS and (run := _OPERATOR_RUN.search(data)):
        return run.start()
    return None
