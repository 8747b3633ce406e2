"""What `touchstone environments list` shows: the environments that problems need, and those that are there."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from touchstone.config.validation import ValidationSettings
from touchstone.validation.environments import environment_name
from touchstone.validation.prepare_environments import prepared_environments
from touchstone.validation.sandbox.interpreters import interpreter
from touchstone.validation.targets import NoTarget, Target


@dataclass(frozen=True)
class ListedEnvironment:
    """One environment: `ready` if it can be used, and how many problems need it."""

    name: str
    ready: bool
    problems: int
    requirements: tuple[str, ...]


def list_environments(settings: ValidationSettings, targets: Iterable[Target | NoTarget]) -> list[ListedEnvironment]:
    """All environments, by name."""
    folder, python = settings.environments_dir, interpreter(settings.python.interpreter)
    prepared = {one.name: one.requirements for one in prepared_environments(folder)} if folder is not None else {}
    ready: Counter[str] = Counter()
    missing: Counter[tuple[str, ...]] = Counter()
    for target in targets:
        if isinstance(target, NoTarget):
            missing.update([target.requirements] if target.requirements else [])
        elif (place := target.problem.environment) is not None:
            inside = folder is not None and place.parent == folder.resolve()
            ready[place.name if inside else str(place)] += 1
    found = [
        ListedEnvironment(name, True, ready[name], prepared.get(name, ())) for name in {*ready.keys(), *prepared.keys()}
    ]
    found += [ListedEnvironment(environment_name(some, python), False, count, some) for some, count in missing.items()]
    return sorted(found, key=lambda one: one.name)
