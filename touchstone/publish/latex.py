"""LaTeX tables for papers: booktabs rules, escaped text, rounded figures."""

import math
import re
from collections.abc import Iterable, Sequence

from touchstone.text import significant, visible

_DIGITS = 4
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "∞": r"$\infty$",
    "…": r"\ldots{}",
} | {mark: f"\\{mark}" for mark in "&%$#_{}"}


def latex_table(header: Sequence[str], rows: Iterable[Sequence[object]], numeric: Sequence[bool]) -> str:
    r"""A `tabular` with one line per row; numeric columns are right-aligned.

    >>> print(latex_table(["model", "pass@1"], [["a_b", 0.123456]], [False, True]).splitlines()[5])
    a\_b & 0.1235 \\
    """
    columns = "".join("r" if number else "l" for number in numeric)
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _line([escaped(name) for name in header]),
        "\\midrule",
        *(_line([latex_cell(value) for value in row]) for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def latex_cell(value: object) -> str:
    r"""A value as LaTeX: figures to four significant digits, a dash for an empty cell.

    >>> latex_cell(1.0728e-06), latex_cell(-0.25), latex_cell(float("inf")), latex_cell(""), latex_cell(True)
    ('$1.073 \\times 10^{-6}$', '$-0.25$', '$\\infty$', '--', 'true')
    """
    match value:
        case "":
            return "--"
        case bool():
            return "true" if value else "false"
        case int():
            return f"$-{-value}$" if value < 0 else str(value)
        case float():
            return _figure(value)
    return escaped(str(value))


def escaped(text: str) -> str:
    r"""Escape text for LaTeX, on one line.

    >>> escaped("50% of a_b\n& more")
    '50\\% of a\\_b \\& more'
    """
    return "".join(_SPECIAL.get(mark, mark) for mark in visible(" ".join(text.split())))


def _figure(value: float) -> str:
    if math.isnan(value):
        return "--"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    text = significant(value, _DIGITS)
    scientific = re.fullmatch(r"(.*)e([+-]\d+)", text)
    if scientific:
        return f"${scientific[1]} \\times 10^{{{int(scientific[2])}}}$"
    return f"${text}$" if value < 0 else text


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
