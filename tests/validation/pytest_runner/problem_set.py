"""Problems whose tests are written the way people write them, each with right and wrong fixes and no reference fix."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.validation.validators.support import tree_of


@dataclass(frozen=True)
class WrittenProblem:
    """A folder with one broken file, and fixes of it that are known to be right or wrong."""

    name: str
    filename: str
    broken: str
    files: Mapping[str, str]
    right: Sequence[str]
    wrong: Sequence[str]

    @property
    def row(self) -> dict[str, Any]:
        """Its row of the problems file."""
        return {"oid": self.name, "filename": self.filename, "working_directory": self.name}

    def write(self, clones: Path) -> None:
        """Write the unmodified problem below a folder."""
        files = {**self.files, self.filename: self.broken}
        tree_of(clones / self.name, {path: textwrap.dedent(text) for path, text in files.items()})

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """Its fixes, as attempts of the models `right` and `wrong`."""
        return [
            {
                "model": model,
                "tier": "T0",
                "oid": self.name,
                "iteration_id": str(place),
                "fixed_file": textwrap.dedent(text),
            }
            for model, texts in (("right", self.right), ("wrong", self.wrong))
            for place, text in enumerate(texts)
        ]


UNPARSABLE_CLASS = WrittenProblem(
    "a-class-that-does-not-parse-yet",
    "money.py",
    "class Money:\n    def __init__(self, cents)\n",
    {
        "test_money.py": """
            from money import Money

            def test_sum():
                assert Money(150) + Money(50) == Money(200)
            """
    },
    right=[
        """
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Money:
            cents: int

            def __add__(self, other):
                return Money(self.cents + other.cents)
        """
    ],
    wrong=["class Money:\n    def __init__(self, cents):\n        self.cents = cents\n"],
)

FIXTURES = WrittenProblem(
    "fixtures-and-conftest",
    "shop/basket.py",
    "def price(items, prices):\n    return 0\n",
    {
        "shop/__init__.py": "",
        "tests/conftest.py": """
            import pytest

            @pytest.fixture
            def prices():
                return {"tea": 3, "cake": 4}

            @pytest.fixture(autouse=True, scope="session")
            def currency():
                yield "EUR"
            """,
        "tests/test_basket.py": """
            import pytest
            from shop.basket import price

            @pytest.fixture(params=[1, 2])
            def count(request):
                return request.param

            def test_price(prices, count):
                assert price(["tea"] * count, prices) == 3 * count

            def test_unknown(prices):
                with pytest.raises(KeyError, match="coffee"):
                    price(["coffee"], prices)
            """,
        "pyproject.toml": """
            [tool.pytest.ini_options]
            addopts = "-ra --strict-markers"
            pythonpath = ["."]
            """,
    },
    right=["def price(items, prices):\n    return sum(prices[item] for item in items)\n"],
    wrong=[
        "def price(items, prices):\n    return sum(prices.get(item, 0) for item in items)\n",
        "def price(items, prices):\n    return 3\n",
    ],
)

FILES = WrittenProblem(
    "files-output-and-patches",
    "notes.py",
    """
    import os

    def save(path, text):
        pass

    def greet():
        print("hello")
    """,
    {
        "test_notes.py": """
            import notes

            def test_save(tmp_path):
                notes.save(tmp_path / "a.txt", "one")
                assert (tmp_path / "a.txt").read_text() == "one"

            def test_greet(capsys, monkeypatch):
                monkeypatch.setenv("NOTES_USER", "Ada")
                notes.greet()
                assert capsys.readouterr().out == "hello Ada\\n"
            """
    },
    right=[
        """
        import os

        def save(path, text):
            path.write_text(text)

        def greet():
            print("hello", os.environ["NOTES_USER"])
        """
    ],
    wrong=[
        """
        import os

        def save(path, text):
            path.write_text(text)

        def greet():
            print("hello")
        """
    ],
)

MARKERS = WrittenProblem(
    "skip-xfail-and-async",
    "queue_times.py",
    "async def wait(minutes):\n    return 0\n",
    {
        "pytest.ini": "[pytest]\nmarkers =\n    slow: takes long\naddopts = -p surely_not_installed -x --tb=short\n",
        "test_queue_times.py": """
            import sys
            import pytest
            from queue_times import wait

            @pytest.mark.slow
            @pytest.mark.asyncio
            async def test_wait():
                assert await wait(3) == 180

            async def test_zero():
                assert await wait(0) == 0

            @pytest.mark.skipif(sys.platform != "win32", reason="needs Windows")
            def test_elsewhere():
                assert False

            @pytest.mark.xfail(reason="not written yet")
            def test_later():
                assert False
            """,
    },
    right=["async def wait(minutes):\n    return minutes * 60\n"],
    wrong=[
        "async def wait(minutes):\n    return minutes\n",
        "import pytest\n\nasync def wait(minutes):\n    pytest.skip('not today')\n",
    ],
)

PROBLEMS = [UNPARSABLE_CLASS, FIXTURES, FILES, MARKERS]
