"""The paths of a configuration: which may be addresses in object storage, and which must be local."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from touchstone.errors import TouchstoneError
from touchstone.locations import input_location, is_mirror, output_location, refuse_address


def local_places(data: dict[str, Any]) -> dict[str, str]:
    """The keys that may be addresses in object storage and are, with the local paths that stand for them."""
    places = {"fixes_dir": input_location, "problems_csv": input_location, "output_dir": output_location}
    given = {key: data[key] for key in places if isinstance(data.get(key), str)}
    found = {key: places[key](text) for key, text in given.items()}
    return {key: str(path.absolute()) for key, path in found.items() if path != Path(given[key])}


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


# Folders of the system: the first as they are, the others with all that is in them.
_SYSTEM = ("/", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/usr", "/usr/local", "/var")
_SYSTEM_TREES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys"),
    *("/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/sbin", "/usr/share"),
)
_SHARED_MEMORY = Path("/dev/shm")


def refuse_system_folder(key: str, path: Path) -> None:
    """Raise an error if a folder belongs to the system, or is the home folder itself: a run would litter it.

    Links and `..` are followed first.

    >>> refuse_system_folder("output_dir", Path("/tmp/../etc/results"))
    Traceback (most recent call last):
        ...
    touchstone.errors.TouchstoneError: output_dir: /etc/results is a folder of the system; choose a folder of your own
    """
    place = resolved(key, path)
    in_tree = any(place.is_relative_to(each) for each in _SYSTEM_TREES) and _SHARED_MEMORY not in place.parents
    if in_tree or str(place) in _SYSTEM:
        raise TouchstoneError(f"{key}: {place} is a folder of the system; choose a folder of your own")
    with suppress(RuntimeError):  # there is no home
        if place == Path.home().resolve():
            raise TouchstoneError(f"{key}: {place} is your home folder; choose a folder in it")


def require_folder(key: str, path: Path) -> None:
    """Raise an error if the folder cannot be created because it, or one of its parents, is a file."""
    for place in (path, *path.parents):
        if place.is_file():
            raise TouchstoneError(f"{key}: {place} is a file, not a folder")


def resolved(key: str, path: Path) -> Path:
    """The path without links and `..`; one line if its links lead in a circle."""
    real = Path(os.path.realpath(path))
    try:
        circular = stat.S_ISLNK(real.lstat().st_mode)
    except OSError as error:
        circular = error.errno == errno.ELOOP
    if circular:
        raise TouchstoneError(f"{key}: {path} is a link that leads to itself; correct it")
    return real
