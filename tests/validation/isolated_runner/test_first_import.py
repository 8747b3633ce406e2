"""The repaired file is found at once, and is the module that the import system would have made."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ASK = """
import importlib, json, sys
from touchstone.validation.isolated_runner.first_import import find_first
sys.dont_write_bytecode = True
sys.path.insert(0, "")
sys.path[0] = __import__("os").getcwd()
before = list(sys.meta_path)
if sys.argv[1] == "at once":
    find_first("solution", json.loads(sys.argv[2]), "")
added = len(sys.meta_path) - len(before)
try:
    module = importlib.import_module("solution")
    spec = module.__spec__
    about = [module.__file__, module.__name__, module.__package__, module.__cached__, spec.origin, spec.has_location]
    about += [spec.submodule_search_locations, module.VALUE]
except Exception as error:
    about = [type(error).__name__, str(error)]
print(json.dumps([added, about, sys.meta_path == before]))
"""


def _imported(how: str, folder: Path) -> tuple[int, list[object], bool]:
    files = json.dumps([str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _ASK, how, files]
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    added, about, same = json.loads(answer.stdout)
    return added, about, same


@pytest.mark.parametrize(
    ("files", "at_once"),
    [
        ({"solution.py": "VALUE = 1"}, True),
        ({"solution.py": "VALUE = __name__, __file__, __spec__.name", "solutions.py": ""}, True),
        ({"solution.py": "# coding: latin-1\nVALUE = 'caf\u00e9'"}, True),
        ({"solution.py": "def ("}, True),
        ({"solution.py": "import helper", "helper.py": "from solution import VALUE"}, True),
        ({"solution.py": "VALUE = 1", "solution/__init__.py": "VALUE = 2"}, False),
        ({"solution.py": "VALUE = 1", "solution.abi3.so": ""}, False),
        ({"other.py": ""}, False),
    ],
    ids=["plain", "names", "encoding", "syntax error", "circular", "package", "library", "missing"],
)
def test_it_is_the_module_that_a_search_finds(tmp_path: Path, files: dict[str, str], at_once: bool) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    added, about, nothing_left = _imported("at once", tmp_path)
    assert (added, nothing_left) == (int(at_once), True)
    assert about == _imported("by search", tmp_path)[1]


def test_another_import_that_comes_first_is_not_affected(monkeypatch: pytest.MonkeyPatch) -> None:
    from touchstone.validation.isolated_runner.first_import import find_first

    before = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", list(before))
    find_first("solution", ["solution.py"], "")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_module_of_this_name")
    assert sys.meta_path == before
