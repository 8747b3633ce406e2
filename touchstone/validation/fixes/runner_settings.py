"""A manifest's settings for its test runner: which tests there are and how they run.

A fix of several files may change a manifest, but not this part of it: it could replace the tests. Then the whole
manifest is put back.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from touchstone.validation.protocol import Tree

MANIFESTS = ("Cargo.toml", "go.mod", "package.json", "pyproject.toml", "setup.cfg", "tox.ini")
_JAVASCRIPT_RUNNERS = ("jest", "mocha", "ava", "tap", "vitest")
_DEVELOPMENT = "for development "
_PYTEST_SECTIONS = ("pytest", "tool:pytest")


def changed_settings(changes: Mapping[str, bytes | None], tree: Tree) -> list[str]:
    """The changed manifests that have other settings for a test runner than before.

    >>> from pathlib import Path
    >>> tree = Tree(Path(), ("package.json",), {"package.json": b'{"scripts": {"test": "jest"}}'})
    >>> changed_settings({"package.json": b'{"scripts": {"test": "true"}}'}, tree)
    ['package.json']
    >>> changed_settings({"package.json": b'{"scripts": {"test": "jest", "lint": "eslint"}}'}, tree)
    []
    """
    return [path for path, content in changes.items() if _is_changed(path, content, tree)]


def _is_changed(path: str, content: bytes | None, tree: Tree) -> bool:
    name = PurePosixPath(path).name
    if name not in MANIFESTS:
        return False
    before = _settings(name, tree.read(path)) if path in tree.files else {}
    after = _settings(name, content) if content is not None else {}
    if before is None or after is None:
        return after is None
    if name == "package.json":
        watched = {word + script for script in before for word in ("", "pre", "post")}
        after = {key: value for key, value in after.items() if key in watched or key.startswith("runner ")}
    if name == "Cargo.toml":
        after = {key: value for key, value in after.items() if not key.startswith(_DEVELOPMENT) or key in before}
    return before != after


def _settings(name: str, content: bytes) -> dict[str, Any] | None:
    """The settings for test runners in a manifest; None if it cannot be read."""
    try:
        if name == "package.json":
            manifest = json.loads(content)
            runners = {f"runner {name}": manifest[name] for name in _JAVASCRIPT_RUNNERS if name in manifest}
            return {**manifest.get("scripts", {}), **runners}
        if name == "go.mod":
            return dict.fromkeys(re.findall(r"^.*=>.*$", content.decode(), re.MULTILINE), True)
        if name == "Cargo.toml":
            return _of_crate(tomllib.loads(content.decode()))
        if name == "pyproject.toml":
            tools = tomllib.loads(content.decode()).get("tool", {})
            return {"pytest": tools["pytest"]} if "pytest" in tools else {}
        sections = configparser.RawConfigParser()
        sections.read_string(content.decode())
        return {section: dict(sections[section]) for section in _PYTEST_SECTIONS if section in sections}
    except (ValueError, AttributeError, RecursionError, configparser.Error):
        return None


def _of_crate(manifest: Mapping[str, Any]) -> dict[str, Any]:
    targets = {kind: manifest.get(kind, []) for kind in ("lib", "bin", "example")}
    harness = {
        (kind, str(target.get("name")), key): target[key]
        for kind, found in targets.items()
        for target in (found if isinstance(found, list) else [found])
        for key in ("harness", "test", "doctest")
        if key in target
    }
    package = {key: manifest.get("package", {}).get(key) for key in ("autotests", "build")}
    replaced = {key: manifest.get(key) for key in ("test", "patch", "replace")}
    listed = {**replaced, **package, "harness": harness}
    listed |= {f"{_DEVELOPMENT}{name}": value for name, value in manifest.get("dev-dependencies", {}).items()}
    return {key: value for key, value in listed.items() if value not in (None, {})}
