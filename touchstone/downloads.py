"""What is already on this disk of the web addresses that people paste: Hugging Face's cache, clones from GitHub.

Nothing is downloaded here; an error says the command that does.
"""

import os
import re
from pathlib import Path

from touchstone.errors import TouchstoneError

# `Path` turns the two slashes into one.
_PLACE = r"(?:/(?:tree|blob|resolve)/(?P<revision>[^/?#]+)(?:/(?P<below>[^?#]*))?)?/?(?:[?#].*)?"
_HUGGING_FACE = re.compile(
    r"https?:/+(?:huggingface|hf)\.co/(?:(?P<kind>dataset|space)s/)?(?P<name>[\w.-]+(?:/[\w.-]+)?)" + _PLACE
)
_GITHUB = re.compile(r"https?:/+github\.com/(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?" + _PLACE)
_CACHED = re.compile(r"(?:dataset|model|space)s--.+")


def downloaded(text: str | Path) -> Path | None:
    """The local path of a data set or repository on the web; None for any other text.

    >>> downloaded("logs/run.eval")
    """
    for pattern, find in ((_HUGGING_FACE, _in_hub_cache), (_GITHUB, _in_clone)):
        if address := pattern.fullmatch(str(text)):
            from urllib.parse import unquote

            folder, below = find(address), unquote(address["below"] or "")
            if folder is None or not (folder / below).exists():
                raise TouchstoneError(f"{address[0]}: not on this disk; run `{_command(address)}` first")
            return folder / below
    return None


def in_hub_cache(path: Path) -> bool:
    """Whether a path is in a folder of Hugging Face's cache, which is not for results."""
    return any(_CACHED.fullmatch(part) for part in path.parts)


def snapshot_of(folder: Path, revision: str = "main") -> Path | None:
    """The files of a revision in a folder of Hugging Face's cache; without a `main`, the newest ones are that."""
    snapshots, ref = folder / "snapshots", folder / "refs" / revision
    if not _CACHED.fullmatch(folder.name) or not snapshots.is_dir():
        return None
    wanted = snapshots / (ref.read_text().strip() if ref.is_file() else revision)
    newest = sorted(snapshots.iterdir(), key=lambda each: each.stat().st_mtime) if revision == "main" else []
    return wanted if wanted.is_dir() else next(reversed(newest), None)


def _in_hub_cache(address: re.Match[str]) -> Path | None:
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    name = f"{address['kind'] or 'model'}s/{address['name']}".replace("/", "--")
    return snapshot_of(cache / name, address["revision"] or "main")


def _in_clone(address: re.Match[str]) -> Path | None:
    """A clone or an unpacked download in the current folder, of the branch that the address names."""
    name, revision = address["name"].rpartition("/")[2], address["revision"]
    head, settings = Path(name, ".git", "HEAD"), Path(name, ".git", "config")
    if settings.is_file() and address["name"] in settings.read_text() and (revision or "") in head.read_text():
        return Path(name)
    branches = [revision] if revision else ["main", "master"]
    return next((place for branch in branches if (place := Path(f"{name}-{branch}")).is_dir()), None)


def _command(address: re.Match[str]) -> str:
    revision = address["revision"]
    if address.re is _GITHUB:
        return f"git clone --depth 1 {f'--branch {revision} ' if revision else ''}https://github.com/{address['name']}"
    of_revision = f" --revision {revision}" if revision not in (None, "main") else ""
    return f"hf download {address['name']} --repo-type {address.groupdict()['kind'] or 'model'}{of_revision}"
