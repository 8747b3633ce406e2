"""Any bytes give findings or a refusal, never another exception; valid modules stay valid under harmless edits."""

import subprocess
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from tests.validation.hcl.recordings import Recording, recordings
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.module import UnreadableError

RECORDED = recordings()
VALID = [recording for recording in RECORDED if not recording.errors]
MODULES = st.sampled_from(RECORDED)
PIECES = st.sampled_from(
    [b"${", b"}", b"{", b"[", b"]", b"(", b'"', b"<<EOT\n", b"EOT\n", b"%{if ", b"%{endif}", b"\0", b"\xff", b".",
     b"for x in ", b" : ", b" => ", b"...", b"=", b"\n", b"//", b"/*", b"var.", b"each.", b"self", b'dynamic "x" {\n',
     b"type = ", b"null", b"depends_on = ", b"count = 1\n", b"?", b"\r\n", "é".encode(), "e\u0301".encode(), b"::",
     b".0.0", b"[*]"]
)  # fmt: skip
PATHS = st.sampled_from(["main.tf", "a/b.tf", "override.tf", "x_override.tf", "main.tf.json", "override.tf.json"])


def check_any(files: dict[str, bytes]) -> None:
    """Findings with a place, or the refusal of a file that only one of the two parsers accepts."""
    try:
        found = check_module(files, None)
    except UnreadableError:
        return
    for error in found.diagnostics:
        assert error.severity == "error"
        assert error.summary
        assert (error.line is None) == (error.column is None)
        if error.line is not None and error.column is not None:
            assert error.end_line is not None
            assert error.end_column is not None
            assert (1, 1) <= (error.line, error.column) <= (error.end_line, error.end_column)


@given(st.dictionaries(PATHS, st.binary(max_size=200), max_size=3))
def test_any_bytes(files: dict[str, bytes]) -> None:
    check_any(files)


@given(st.lists(PIECES | st.binary(max_size=4), max_size=30), PATHS)
@example([b"::"], "main.tf.json")
@example([b'{"": 1, "a"'], "main.tf.json")
def test_any_pieces_of_the_language(pieces: list[bytes], path: str) -> None:
    check_any({path: b"".join(pieces)})


@given(MODULES, st.data())
def test_any_edit_of_a_module(recording: Recording, data: st.DataObject) -> None:
    files = dict(recording.root_files)
    path = data.draw(st.sampled_from(sorted(files)))
    content = files[path]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 12)))
        content = content[:start] + data.draw(PIECES | st.binary(max_size=3) | st.just(b"")) + content[end:]
    check_any({**files, path: content})


@given(st.sampled_from(VALID), st.data())
def test_valid_modules_stay_valid_under_comments_and_line_ends(recording: Recording, data: st.DataObject) -> None:
    before = data.draw(st.sampled_from([b"", b"\n\n", b'# a [ { ( " ${var.x}\n', b"/* \n */\n", b"\xef\xbb\xbf"]))
    after = data.draw(st.sampled_from([b"", b"\n", b"// end", b"\r\n"]))
    files = {
        path: content if path.endswith(".json") else before + content + after
        for path, content in recording.root_files.items()
    }
    assert check_module(files, None).diagnostics == ()


def test_the_worker_starts_fast_because_nothing_heavy_is_imported() -> None:
    heavy = "{'polars', 'duckdb', 'pyarrow', 'dagster', 'numpy', 'pydantic', 'subprocess'}"
    script = f"import sys, touchstone.validation.hcl; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
