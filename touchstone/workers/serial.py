"""Workers in this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from touchstone.workers.protocol import Item, Outcomes, Result, WorkerState


@dataclass
class SerialWorkers:
    """Maps in this process, one item at a time."""

    setup: Callable[..., WorkerState]
    arguments: tuple[Any, ...] = ()
    _state: WorkerState | None = field(default=None, init=False)

    def map(self, function: Callable[[Any, Item], Result], items: Sequence[Item]) -> Outcomes[Result]:
        """Yield results in the order of the items."""
        if self._state is None:
            self._state = self.setup(*self.arguments)
        for place, item in enumerate(items):
            try:
                yield place, function(self._state, item)
            except Exception as error:
                yield place, error

    def close(self) -> None:
        """Close what `setup` made."""
        if self._state is not None:
            self._state.close()
            self._state = None
