"""What a fix replaces or reaches for outside its own code."""

import pytest

from touchstone.validation.judging.patched_names import patched_names

HEAD = "import builtins, math, os, sys, unittest.mock as mock\nimport numpy as np\nfrom re import Pattern\nimport own\n"


@pytest.mark.parametrize(
    "line",
    [
        *("math.isclose = max", "builtins.abs = lambda x: 0", "np.testing.assert_allclose = print", "del math.pi"),
        *("setattr(math, 'e', 3)", "vars(math)['e'] = 3", "math.__dict__.update(e=3)", "sys.modules['re'] = None"),
        *("math.fsum.__defaults__ = ()", "other.__class__.__eq__ = max", "given.__code__ = 0", "once(sys, 'e')"),
        *("once(sys.modules['test_it'], 'check')", "given.__globals__['check']", "frame.f_back", "Pattern.match = 1"),
        *("os.path.names['e'] = 3", "math.fsum.__kwdefaults__"),
        *("getattr(given, '__glo' + 'bals__')", "object.__subclasses__()", "sys.modules.__setitem__('re', None)"),
    ],
)
def test_it_is_found(line: str) -> None:
    assert [found for _, found in patched_names(f"{HEAD}{line}\n".encode(), {"own"})] == [line]


@pytest.mark.parametrize("start", [b"#\x0c\x0b\n", b"# coding: utf-7\n+AAo-+AAo-\n", b"# coding: latin-1\n# \xff\r"])
def test_no_separator_or_encoding_shows_another_line(start: bytes) -> None:
    code = start + b"import math\nmath.isclose = max\nimport math\nimport math\n"
    assert list(patched_names(code)) == [("math.isclose", "math.isclose = max")]


def test_ordinary_code_changes_nothing() -> None:
    code = f"""{HEAD}
class Node:
    def __init__(self, **given):
        self.left = self.value = None
        self.__class__ = Node
        for name in given: setattr(self, name, given[name])
def wraps(function):
    def wrapper(*_): return function(*_)
    wrapper.__name__, wrapper.__doc__, wrapper.calls = function.__name__, function.__doc__, 0
    return wrapper
Node.__eq__ = lambda self, other: self is other
own.setting = 1
os.environ["A"] = "b"
sys.stdout = open(os.devnull, "w")
table = {{}}
table["a"] = np.zeros(3)
table.update(b=getattr(math, "pi"), c=hasattr(np, "nan"))
np.random.seed(0)
def roll(math, source=np): return Node(math, math.floor, source)
math.calls = roll(math)
"""
    assert list(patched_names(code.encode(), {"own"})) == []
    assert list(patched_names(b"def broken(")) == []
