"""The paths of a configuration: which may be addresses in object storage, and which must be local."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from touchstone.errors import TouchstoneError
from touchstone.locations import address, input_location, is_mirror, output_location, refuse_address


def local_places(data: dict[str, Any]) -> dict[str, str]:
    """The keys that may be addresses in object storage and are, with the local paths that stand for them."""
    places = {"fixes_dir": input_location, "problems_csv": input_location, "output_dir": output_location}
    given = {key: data[key] for key in places if isinstance(data.get(key), str)}
    return {key: str(places[key](text)) for key, text in given.items() if address(text) is not None}


def refuse_addresses(section: BaseModel, prefix: str = "") -> None:
    """Raise an error if a path that must be local is an address in object storage."""
    for name, value in section:
        if isinstance(value, BaseModel):
            refuse_addresses(value, f"{prefix}{name}.")
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Path):
                refuse_address(each, f"{prefix}{name}")


def require_local(what: str, path: Path) -> None:
    """Raise an error if a path that is written to is that of mirrored inputs."""
    if is_mirror(path):
        raise TouchstoneError(f"{what}: {path} is a mirror of object storage, which nothing may write to")


def require_folder(key: str, path: Path) -> None:
    """Raise an error if the folder cannot be created because it, or one of its parents, is a file."""
    for place in (path, *path.parents):
        if place.is_file():
            raise TouchstoneError(f"{key}: {place} is a file, not a folder")
