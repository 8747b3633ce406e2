"""Local values of files that do not parse: none may vanish, as far as one can tell from the broken text."""

import pytest

from tests.validation.judging.test_removed_blocks import removed, report
from touchstone.validation.judging.removed_blocks import removed_blocks

LOCALS = """\
locals {
  first = 1
  tags = {
    inner = "x"
  }
  last = [
    2,
  ]
}
"""
OUTPUT = 'output "x" {\n  value = 1\n}\n'
BROKEN = {
    "elsewhere in the file": LOCALS + OUTPUT.replace("value =", "value = ="),
    "in its own value": LOCALS.replace("first = 1", "first = = 1") + OUTPUT,
    "without an equals sign": LOCALS.replace("first = 1", "first 1") + OUTPUT,
    "with a colon": LOCALS.replace("first = 1", "first : 1") + OUTPUT,
    "in quotes": LOCALS.replace("first = 1", '"first" = 1') + OUTPUT,
    "in a string without an end": LOCALS.replace("first = 1", 'first = "1') + OUTPUT,
    "a brace is missing inside": LOCALS.replace("  }\n", "") + OUTPUT,
    "a bracket is missing inside": LOCALS.replace("  ]\n", "") + OUTPUT,
    "a brace too many": LOCALS.replace("  }\n", "  }}\n") + OUTPUT,
    "its end is missing": LOCALS.removesuffix("}\n") + OUTPUT,
    "its end is the file's": OUTPUT + LOCALS.removesuffix("}\n"),
    "its brace is on the next line": LOCALS.replace("locals {", "locals\n{") + OUTPUT,
    "with an equals sign": LOCALS.replace("locals {", "locals = {") + OUTPUT.replace("value =", "value = ="),
    "beside a heredoc": LOCALS.replace("first = 1", "first = <<EOT\n  other = 1\n}\nEOT\n  more = = 1") + OUTPUT,
    "not indented": LOCALS.replace("  ", "").replace("first = 1", "first = = 1") + OUTPUT,
}


@pytest.mark.parametrize("how", BROKEN)
def test_of_a_broken_block(how: str) -> None:
    more = "  more = 1\n" if "more" in BROKEN[how] else ""
    kept = LOCALS.replace("  first = 1\n", more) + OUTPUT
    assert removed(BROKEN[how], kept) == ['Block removed: local "first"']
    assert removed(BROKEN[how], LOCALS.replace("}\n}", f"}}\n{more}}}").replace("]\n}", f"]\n{more}}}") + OUTPUT) == []
    assert removed(BROKEN[how], kept.replace("locals {", "locals {\n  renamed = 1")) == []


@pytest.mark.parametrize(
    "text",
    [
        "locals {\na = {\nb = 1\n}\nc = = 2\n}\n",
        "locals {\n  a = {\n  b = 1\n  c = 2\n}\n",
        'locals {\n  a = "${x}" {\n    b = 1\n  }\n}\n',
        "locals {\n  a = <<EOT\n  b = 1\n  c = 2\n}\n",
        "locals {\n  a = var.x ?\n    b :\n    c\n}\n",
        "locals {\n  a = merge(var.x, {\n    b = 1\n  }\n}\n",
        "locals {\n  # b = 1\n  a = = 1 # c = 2\n}\n",
    ],
)
def test_words_that_are_no_local_values(text: str) -> None:
    kept = "locals {\n  a = 1\n  c = 2\n}\n" if "c = = 2" in text else "locals {\n  a = 1\n}\n"
    assert removed(text, kept) == []


def test_on_one_line() -> None:
    assert removed("locals { a = = 1 }\n" + OUTPUT, "locals {\n}\n" + OUTPUT) == ['Block removed: local "a"']


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("locals {\n  a {\n    b = 1\n  }\n}\n", "locals {\n}\n"),
        ("locals = {\n  a = 1\n}\n", "# nothing\n"),
        ('terraform = {\n  required_version = "1"\n}\n', "# nothing\n"),
    ],
)
def test_what_parses_and_was_meant_to_be_a_declaration(before: str, after: str) -> None:
    assert len(removed(before, after)) == 1
    assert removed(before, "locals {\n  a = 1\n}\nterraform {\n}\n") == []


JSON_BLOCKS = {
    "locals": ('"locals": {"a": 1, "b": 2}', '"locals": {"a": 1}', 'local "b"'),
    "locals in a list": ('"locals": [{"a": 1}, {"b": 2}]', '"locals": [{"a": 1}]', 'local "b"'),
    "variables": ('"variable": {"a": {}, "b": {}}', '"variable": {"a": {}}', 'variable "b"'),
    "outputs": ('"output": {"a": {"value": 1}, "b": {"value": 2}}', '"output": {"a": {"value": 1}}', 'output "b"'),
    "modules": ('"module": {"a": {"source": "./a"}, "b": {}}', '"module": {"a": {"source": "./a"}}', 'module "b"'),
    "providers": ('"provider": {"a": {}, "b": [{}]}', '"provider": {"a": {}}', 'provider "b"'),
    "resources": ('"resource": {"x_y": {"a": {}, "b": {}}}', '"resource": {"x_y": {"a": {}}}', 'resource "x_y" "b"'),
}


@pytest.mark.parametrize("kind", JSON_BLOCKS)
@pytest.mark.parametrize("broken", ["{%s,}", '{%s "x": 1}', '{// comment\n%s "x": 1}'])
def test_in_json_syntax(kind: str, broken: str) -> None:
    whole, less, gone = JSON_BLOCKS[kind]
    before, after, kept = (
        report(text, "a.tf.json") for text in (broken.replace("%s", whole), f"{{{less}}}", f"{{{whole}}}")
    )
    assert [found.summary for found in removed_blocks(before, after)] == [f"Block removed: {gone}"]
    assert removed_blocks(before, kept) == []
