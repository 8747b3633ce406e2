"""A tiny package, as a wheel in a local folder and installed in an environment."""

import zipfile
from pathlib import Path

SOLUTION = """
import tinypkg

def answer():
    return tinypkg.ANSWER
"""
TESTS = """
from solution import answer

def test_answer():
    assert answer() == 42
"""
FILES = {"solution.py": SOLUTION, "test_solution.py": TESTS}


def write_wheel(folder: Path, version: str = "1.0", answer: int = 42) -> Path:
    """A wheel of the package `tinypkg`, which has one constant."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"tinypkg-{version}.dist-info"
    files = {
        "tinypkg/__init__.py": f"ANSWER = {answer}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tinypkg\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    wheel = folder / f"tinypkg-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def install(wheel: Path, environment: Path) -> Path:
    """Unpack a wheel into the only `site-packages` of an environment, which is returned."""
    (site,) = environment.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site
