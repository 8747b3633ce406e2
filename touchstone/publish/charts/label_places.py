"""Where names beside the points of a scatter plot fit: at one of four corners, or nowhere if all are taken."""

from collections.abc import Sequence
from typing import NamedTuple

# The corners in the order in which they are tried: horizontal and vertical direction, down is positive.
CORNERS = ((1, 1), (-1, -1), (-1, 1), (1, -1))
DX, DY = 7, 10
# Of the type of all charts.
_LETTER, _LINE = 6.0, 12.0
_POINT = 6.0


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def label_places(
    points: Sequence[tuple[float, float]], labels: Sequence[str | None], width: float, height: float
) -> list[int | None]:
    """The corner of each point, in pixels, at which its label covers no other label and the fewest points.

    A label that would leave the plot or cover another at every corner has none.

    >>> label_places([(10, 50), (20, 52), (22, 54)], ["first", "second", None], 300, 100)
    [3, 0, None]
    """
    dots = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    plot, taken = Box(0, -_LINE, width, height + _LINE), list[Box]()
    places: list[int | None] = []
    for (x, y), label in zip(points, labels, strict=True):
        boxes = {nth: _box(x, y, len(label), *corner) for nth, corner in enumerate(CORNERS)} if label else {}
        free = {
            nth: sum(box.overlaps(dot) for dot in dots)
            for nth, box in boxes.items()
            if box.left >= plot.left
            and box.right <= plot.right
            and box.top >= plot.top
            and box.bottom <= plot.bottom
            and not any(box.overlaps(other) for other in taken)
        }
        best = min(free, key=lambda nth: (free[nth], nth), default=None)
        places.append(best)
        if best is not None:
            taken.append(boxes[best])
    return places


def _box(x: float, y: float, letters: int, right: int, down: int) -> Box:
    near, far = x + right * DX, x + right * (DX + letters * _LETTER)
    middle = y + down * DY
    return Box(min(near, far), middle - _LINE / 2, max(near, far), middle + _LINE / 2)
