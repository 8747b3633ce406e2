"""Names of models that only the name of a file or of its folder tells."""

import re
from dataclasses import dataclass
from pathlib import Path

_GENERIC = re.compile(r"(?:^|[-_.])(?:samples?|results?)$")


@dataclass(frozen=True)
class NamedModel:
    """The name of a model, and a sentence for `notes` that says where it was found."""

    name: str
    note: str


def model_of_name(path: Path, stem: str) -> NamedModel:
    """The model that a file's name stands for; the folder's name if `stem`, the rest of the file's name, says nothing.

    >>> model_of_name(Path("gpt-4_samples.jsonl"), "gpt-4_samples").name
    'gpt-4'
    >>> model_of_name(Path("/runs/gpt-4/samples.jsonl"), "samples").name
    'gpt-4'
    """
    name = _GENERIC.sub("", stem).strip(" ._-")
    if name:
        return NamedModel(name, f"the file does not name the model; '{name}' comes from the file's name")
    folder = path.resolve().parent.name.strip() or "unnamed"
    return NamedModel(folder, f"the file does not name the model; '{folder}' is the name of its folder")
