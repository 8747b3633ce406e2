"""What is noticed of changes in pytest, with and without a look at memory. Whole attacks belong in `test_forgery`."""

from collections.abc import Callable
from typing import Any

import _pytest.pastebin
import pytest

from touchstone.validation.pytest_runner import tampering
from touchstone.validation.pytest_runner.tampering import CodeSnapshot

CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "create_new_paste": lambda patch: patch.setattr(_pytest.pastebin, "create_new_paste", lambda config, text: ""),
    "fail": lambda patch: patch.delattr(pytest, "fail"),
    "runtest": lambda patch: patch.setattr(pytest.Item, "runtest", lambda self: None),
    "pytest_unconfigure": lambda patch: patch.setattr(
        _pytest.pastebin.pytest_unconfigure, "__code__", _pytest.pastebin.pytest_addoption.__code__
    ),
}


@pytest.fixture(params=["memory", "objects"])
def snapshot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CodeSnapshot:
    assert tampering._VERSION and tampering._CODE
    if request.param == "objects":  # a Python whose memory is not known
        monkeypatch.setattr(tampering, "_VERSION", 0)
        monkeypatch.setattr(tampering, "_CODE", 0)
    return CodeSnapshot()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed_until_it_is_undone(snapshot: CodeSnapshot, name: str) -> None:
    assert snapshot.changed() is None
    with pytest.MonkeyPatch.context() as patch:
        CHANGES[name](patch)
        found = snapshot.changed()
    assert (found, snapshot.changed()) == (name, None)


def test_another_name_in_a_module_is_no_change(snapshot: CodeSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    added: Any = _pytest.pastebin
    monkeypatch.setattr(added, "something_else", 1, raising=False)
    assert snapshot.changed() is None
