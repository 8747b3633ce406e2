"""Extracting code from models' answers, wrapped and bare: what is stripped, and what must not be."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from touchstone.validation.fixes.extract_code import extract_code

CODE = 'resource "a" "b" {\n  name = "x"\n}\n'


@pytest.mark.parametrize(
    "answer",
    [
        f"```\n{CODE}```",
        f"```hcl\n{CODE}```\n",
        f"\n\n```hcl title=main.tf\n{CODE}```  \n\n",
        f"~~~terraform\n{CODE}~~~",
        f"`````\n{CODE}`````",
        f"```hcl\n{CODE}`````",
        f"<![CDATA[{CODE}]]>",
        f"<![CDATA[\n{CODE}]]>",
        f"  <![CDATA[\n{CODE}  ]]>\n",
        f"<![CDATA[```hcl\n{CODE}```]]>",
        f"```xml\n<![CDATA[\n{CODE}]]>\n```",
        f"Here is the corrected code:\n\n```hcl\n{CODE}```\n",
        f"```hcl\n{CODE}```\n\nI closed the block; use it as is.",
        f"# Fix\n\n- The `name` was missing.\n- Nothing else.\n\n```hcl\n{CODE}```\n\nfrom the docs: see above",
        f"```hcl\n{CODE}",
        "  ```hcl\n  " + CODE.replace("\n", "\n  ") + "```",
    ],
)
def test_wrapping_comes_off(answer: str) -> None:
    assert extract_code(answer) == CODE


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        "",
        "  \n\tx",
        'def f():\n    """Do it.\n\n```\nf()\n```\n    """\n',
        '"""Module.\n\n```python\nf()\n```\n"""\n',
        '# A module\n"""\n```\nf()\n```\n"""\n',
        'resource "a" "b" {\n  text = <<-EOT\n```\nx\n```\nEOT\n}\n',
        "cat <<'EOF'\n```\nx\n```\nEOF\n",
        "/*\n```\nlet x = f();\n```\n*/\n",
        "/// ```\n/// f();\n/// ```\nfn f() {}\n",
        "import os\n```\nx\n```\n",
        "x = 1\n~~~\ny\n~~~\n",
        "use `x`\n\n```x```\n",
        "Prose, and a fence that nothing closes:\n```\nx\n",
        "Prose, and no line that starts with a fence: ```x\n```\n",
        "In a list:\n  ```\n  x\n  ```\n",
        "<![CDATA[a]]> and <![CDATA[b]]>",
        "<![CDATA[ never closed",
        # Which of several blocks is the fix is not guessed.
        "Before:\n```hcl\na\n```\nAfter:\n```hcl\nb\n```\n",
        "```hcl\na\n```\nor\n```hcl\nb\n```",
        "```\na\n```\nor\n```\nb\n```",
    ],
)
def test_code_is_never_cut(code: str) -> None:
    assert extract_code(code) == code


@pytest.mark.parametrize(
    "inner",
    [
        "text = <<EOT\n```\nx\n```\nEOT\n",
        "text = <<EOT\n```sh\nx\n```\nEOT\n",
        "~~~\nx\n~~~\n",
        '    """\n    ```\n    x\n    ```\n    """\n',
    ],
)
def test_fences_inside_the_fence_stay(inner: str) -> None:
    assert extract_code(f"```hcl\n{inner}```") == inner
    assert extract_code(f"Here:\n````hcl\n{inner}````\n") == inner


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("````\n```\nx\n```\n````", "```\nx\n```\n"),
        ("<![CDATA[a[b[0]]]]><![CDATA[> 1]]>", "a[b[0]]> 1"),
        ("```hcl\n```", ""),
        ("```hcl\r\na\r\nb\r\n```\r\n", "a\r\nb\r\n"),
    ],
    ids=["one layer of fences", "an escaped end of CDATA", "an empty fence", "Windows line ends"],
)
def test_what_is_inside_stays(answer: str, code: str) -> None:
    assert extract_code(answer) == code


def test_long_answers_take_no_time() -> None:
    assert extract_code("x" + " " * 1_000_000 + "y") != ""
    assert extract_code("Here:\n```\nx\n```\n" + "a" * 500_000 + " " * 500_000) == "x\n"


pieces = st.sampled_from(["```", "~~~", "````", "```py", "x = 1", "Prose.", "", "  ", "{", "<![CDATA[", "]]>", '"""'])
texts = st.lists(pieces, max_size=12).map("\n".join) | st.text()


@given(texts)
def test_any_text_has_an_answer_that_is_part_of_it(text: str) -> None:
    assert len(extract_code(text)) <= len(text)


@given(texts)
def test_without_marks_nothing_changes(text: str) -> None:
    assume("```" not in text and "~~~" not in text and "<![CDATA[" not in text)
    assert extract_code(text) == text


@given(texts, st.sampled_from(["", "hcl"]), st.sampled_from(["`", "~"]), st.booleans())
def test_a_fence_longer_than_all_inside_comes_off(code: str, language: str, mark: str, cdata: bool) -> None:
    assume("CDATA" not in code and not code.endswith("\r"))
    fence = mark * 70
    assume(fence not in code)
    answer = f"{fence}{language}\n{code}\n{fence}"
    assert extract_code(f"<![CDATA[{answer}]]>" if cdata else answer) == f"{code}\n"
