"""Extract the code from a model's answer: strip CDATA and Markdown fences, never cut code.

Code may itself contain fences, in a docstring or a heredoc. A fence is stripped only if the text starts with it, or if
everything around its only fenced block reads as prose. With several blocks, choosing one would be a guess, so the text
stays unchanged. Known limitation: a Markdown file with prose around a single block looks like such an answer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_CDATA_START, _CDATA_END = "<![CDATA[", "]]>"
_CDATA_ESCAPED_END = "]]]]><![CDATA[>"

_FENCE = re.compile(r"(?P<indent> {0,3})(?P<marks>`{3,}|~{3,})(?P<info>.*)")

_CODE_ENDS = ("{", "}", ";", "(", "[", ")]", "},", "],", "),")
_CODE_STARTS = ("#!", "#[", "#include", "//", "/*", "*/", "<?", "}", ")", "]")
# Possessive where two repetitions could share characters, so that matching takes time in proportion to the line.
_CODE = re.compile(
    r"""
    \s*[\w.\[\]"']+\s*[-+*/:]?=\s*\S                # an assignment
    | \s*(const|let|var|export|static)\s+\w++.*=    # a declaration
    | \s*@\w+                                       # a decorator
    | \s*import\s+[\w.]+(\s+as\s+\w+)?$
    | \s*from\s+[\w.]+\s+import\b
    | \s*(async\s+)?def\s+\w+\(
    | \s*(class|for|while|with|if|elif|else|try|except)\b[^.]*:$
    | .*<<[-~]?["']?[A-Za-z_]                       # a heredoc
    """,
    re.VERBOSE,
)


def extract_code(text: str) -> str:
    r"""The code in an answer, without surrounding CDATA or Markdown fence. Plain code is returned unchanged.

    >>> extract_code("Here is the fix:\n\n```python\nx = 1\n```\nIt sets x.")
    'x = 1\n'
    >>> extract_code("<![CDATA[\nx = 1\n]]>")
    'x = 1\n'
    >>> extract_code('notes = <<EOT\n```\nx = 1\n```\nEOT\n')
    'notes = <<EOT\n```\nx = 1\n```\nEOT\n'
    """
    return without_cdata(_without_fence(without_cdata(text)))


def without_cdata(text: str) -> str:
    """The text without CDATA around it."""
    whole = text.strip()
    if not (whole.startswith(_CDATA_START) and whole.endswith(_CDATA_END)):
        return text
    content = whole[len(_CDATA_START) : -len(_CDATA_END)].replace(_CDATA_ESCAPED_END, _CDATA_END)
    if _CDATA_START in content:
        return text
    head, newline, rest = content.partition("\n")
    if newline and not head.strip():
        content = rest
    code, newline, tail = content.rpartition("\n")
    return code + newline if newline and not tail.strip() else content


@dataclass(frozen=True)
class _Fence:
    """A line of fence marks. Line numbers start at 0."""

    line: int
    indent: int
    marks: str
    info: str

    def closes(self, opening: "_Fence") -> bool:
        return not self.info and self.marks.startswith(opening.marks)

    def opens_inside(self, opening: "_Fence") -> bool:
        return bool(self.info) and self.marks.startswith(opening.marks)


@dataclass(frozen=True)
class _Block:
    """A fenced block. Without a closing fence it extends to the end of the text."""

    opening: _Fence
    closing: _Fence | None

    def content(self, lines: Sequence[str]) -> str:
        last = self.closing.line if self.closing else len(lines)
        indent = re.compile(rf" {{0,{self.opening.indent}}}")
        inside = [indent.sub("", line, count=1) for line in lines[self.opening.line + 1 : last]]
        return "".join(f"{line}\n" for line in inside) if self.closing else "\n".join(inside)

    def outside(self, lines: Sequence[str]) -> Sequence[str]:
        return [*lines[: self.opening.line], *(lines[self.closing.line + 1 :] if self.closing else ())]


def _without_fence(text: str) -> str:
    lines = text.split("\n")
    fences = list(_fences(lines))
    if not fences:
        return text
    starts_fenced = not any(line.strip() for line in lines[: fences[0].line])
    if starts_fenced and _holds_bare_fences(fences, lines):
        return _Block(fences[0], fences[-1]).content(lines)
    blocks = _blocks(fences)
    if len(blocks) != 1:
        return text
    block = blocks[0]
    prose_around = block.closing and not block.opening.indent and not any(map(_reads_as_code, block.outside(lines)))
    return block.content(lines) if starts_fenced or prose_around else text


def _fences(lines: Sequence[str]) -> Iterator[_Fence]:
    for number, line in enumerate(lines):
        found = _FENCE.fullmatch(line.rstrip())
        if found and not (found["marks"][0] == "`" and "`" in found["info"]):
            yield _Fence(number, len(found["indent"]), found["marks"], found["info"].strip())


def _holds_bare_fences(fences: Sequence[_Fence], lines: Sequence[str]) -> bool:
    """Whether the whole text is one block with a named language that contains pairs of bare fences.

    A second top-level block would name its language, as the first one does.
    """
    if len(fences) < 4:
        return False
    first, *inner, last = fences
    alike = [fence for fence in inner if fence.marks.startswith(first.marks)]
    ends_fenced = last.closes(first) and not any(line.strip() for line in lines[last.line + 1 :])
    return ends_fenced and bool(first.info) and len(alike) % 2 == 0 and not any(fence.info for fence in alike)


def _blocks(fences: Sequence[_Fence], *, nested: bool = True) -> list[_Block]:
    """The outermost blocks, if a fence that names a language opens a nested block and all of them are closed.

    Otherwise the blocks as CommonMark parses them: the first fence that can close a block closes it.
    """
    blocks = []
    open_fences: list[_Fence] = []
    for fence in fences:
        if open_fences and fence.closes(open_fences[-1]):
            opening = open_fences.pop()
            if not open_fences:
                blocks.append(_Block(opening, fence))
        elif not open_fences or (nested and fence.opens_inside(open_fences[-1])):
            open_fences.append(fence)
    if open_fences and nested:
        return _blocks(fences, nested=False)
    return blocks + [_Block(fence, None) for fence in open_fences[:1]]


def _reads_as_code(line: str) -> bool:
    bare = line.strip()
    quotes = '"""' in bare or "'''" in bare
    return quotes or bare.endswith(_CODE_ENDS) or bare.startswith(_CODE_STARTS) or bool(_CODE.match(line.rstrip()))
