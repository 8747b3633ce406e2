"""The layers of the package: imports point one way."""

from tests.conftest import PROJECT
from touchstone.storage.code_version import imports_of

# From the top down; a layer imports only those after it. Everything else is shared and stands at the bottom.
LAYERS = [
    {"cli"},
    {"adapters"},
    {"evaluation"},
    {"publish"},
    {"audit"},
    {"trends"},
    {"comparison"},
    {"metrics", "validation"},
    {"inference", "ingest"},
    {"storage"},
    {"workers"},
]
SHARED = len(LAYERS)


def layer_of(module: str) -> tuple[int, str]:
    part = module.split(".")[1] if "." in module else ""
    return next((place for place, names in enumerate(LAYERS) if part in names), SHARED), part


def modules() -> list[str]:
    files = sorted((PROJECT / "touchstone").rglob("*.py"))
    return [".".join(file.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__") for file in files]


def test_imports_point_down() -> None:
    upward = []
    for module in modules():
        layer, part = layer_of(module)
        for imported in imports_of(module) - {"touchstone"}:
            below, other = layer_of(imported)
            beside = below == layer < SHARED and other != part
            if (below < layer or beside) and module != "touchstone":
                upward.append(f"{module} imports {imported}")
    assert not upward
