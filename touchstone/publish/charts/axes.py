"""Axes of the charts that `simple_svg` draws: where values stand, round ticks, and their labels."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from touchstone.publish.charts.theme import config
from touchstone.publish.charts.vega import Spec

_LOOKS = config("light")["axis"]
_GAP = 8
_TICK = 5
# Pixels of a letter at the size of all labels; an estimate, because only a browser knows its fonts.
_NARROW, _WIDE = set("fijlrtI.,:;|!'()[]- "), set("mwMW@%…")


def text_width(text: str, size: float = 11) -> float:
    """The width of a text in pixels, rather more than less.

    >>> round(text_width("model"))
    34
    """
    letters = (0.38 if each in _NARROW else 0.9 if each in _WIDE or _is_wide(each) else 0.59 for each in text)
    return size * sum(letters)


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def round_ticks(low: float, high: float, count: int) -> list[float]:
    """About as many round values between two ends, as d3 chooses them.

    >>> round_ticks(0.42, 0.61, 4)
    [0.45, 0.5, 0.55, 0.6]
    """
    rough = (high - low) / count
    ten: float = 10 ** math.floor(math.log10(rough))
    step = ten * next((size for most, size in ((1.414, 1), (3.162, 2), (7.071, 5)) if rough / ten < most), 10)
    return [round(nth * step, 12) for nth in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def formatted(value: float, form: str, step: float = 1.0) -> str:
    """A number in one of the formats that axes have; the digits of a percentage are those that the ticks need.

    >>> [formatted(*each) for each in ((0.5, ".2f"), (-0.125, "+%", 0.005), (0.5, ".3~f"), (0.00002, "$~r"))]
    ['0.50', '−12.5%', '0.5', '$0.00002']
    """
    digits = max(0, -math.floor(math.log10(step) + 1e-9) - 2)
    text = {
        ".2f": f"{value:.2f}",
        "+%": f"{value:+.{digits}%}",
        ".3~f": f"{value:.3f}".rstrip("0").rstrip("."),
        "$~r": f"${float(f'{value:.6g}'):.12f}".rstrip("0").rstrip("."),
    }[form]
    return text.replace("-", "−")


@dataclass(frozen=True)
class Names:
    """An axis of names, a step apart: on the left, or on top and turned."""

    labels: Sequence[str]
    step: float
    is_y: bool

    @property
    def length(self) -> float:
        """Pixels from end to end."""
        return self.step * len(self.labels)

    @property
    def space(self) -> float:
        """Pixels that the labels take beside the plot."""
        return max(map(text_width, self.labels)) + _GAP

    @cached_property
    def _places(self) -> dict[str, float]:
        return {label: (nth + 0.5) * self.step for nth, label in enumerate(self.labels)}

    def place(self, label: str) -> float:
        """Where a name stands."""
        return self._places[label]

    def svg(self, across: float) -> str:
        """The labels."""
        turn = "" if self.is_y else "rotate(-90)"
        anchor = 'text-anchor="end"' if self.is_y else ""
        texts = (
            (-_GAP, self.place(label) + 4) if self.is_y else (self.place(label) + 4, -_GAP) for label in self.labels
        )
        shown = "".join(
            f'<text transform="translate({x:g},{y:g}){turn}">{escape(label)}</text>'
            for (x, y), label in zip(texts, self.labels, strict=True)
        )
        return f'<g {anchor} fill="{_LOOKS["labelColor"]}">{shown}</g>'


@dataclass(frozen=True)
class Numbers:
    """An axis of numbers with ticks, a grid and a title: on the left, or below."""

    channel: Spec
    length: float
    is_y: bool

    @property
    def space(self) -> float:
        """Pixels that labels and title take beside the plot."""
        return max((text_width(label) for _, label in self._ticks), default=0) + _GAP + 20 if self.is_y else 40

    def place(self, value: float) -> float:
        """Where a number stands, in pixels from the left or from the top."""
        low, high = self.channel["scale"]["domain"]
        if self.channel["scale"].get("type") == "log":
            low, high, value = math.log(low), math.log(high), math.log(value)
        share: float = (value - low) / (high - low)
        return self.length * (1 - share if self.is_y else share)

    @cached_property
    def _ticks(self) -> list[tuple[float, str]]:
        """The ticks with their labels; one that would cover the label before it is empty."""
        axis, (low, high) = self.channel["axis"], self.channel["scale"]["domain"]
        values = axis["values"] if "values" in axis else round_ticks(low, high, axis["tickCount"])
        step = values[1] - values[0] if len(values) > 1 else 1.0
        ticks: list[tuple[float, str]] = []
        free = -math.inf
        for value in values:
            text = formatted(value, axis["format"], step)
            half = 0 if self.is_y else text_width(text) / 2
            fits = self.is_y or self.place(value) - half > free
            free = self.place(value) + half if fits else free
            ticks.append((value, text if fits else ""))
        return ticks

    def svg(self, across: float) -> str:
        """The grid over the plot, which is as wide or high as `across`, and ticks, labels and title beside it."""
        places = [self.place(value) for value, _ in self._ticks]
        if self.is_y:
            grid = "".join(f"M0,{place:.1f}h{across:g}" for place in places)
            ticks = "".join(f"M0,{place:.1f}h{-_TICK}" for place in places) + f"M0,0v{self.length:g}"
            at = [(float(-_GAP), place + 4) for place in places]
            title = f'transform="translate({12 - self.space:g},{self.length / 2:g})rotate(-90)"'
        else:
            grid = "".join(f"M{place:.1f},0v{across:g}" for place in places)
            ticks = "".join(f"M{place:.1f},{across:g}v{_TICK}" for place in places) + f"M0,{across:g}h{self.length:g}"
            at = [(place, across + 17) for place in places]
            title = f'transform="translate({self.length / 2:g},{across + 35:g})"'
        labels = "".join(
            f'<text x="{x:.1f}" y="{y:.1f}">{escape(label)}</text>'
            for (x, y), (_, label) in zip(at, self._ticks, strict=True)
        )
        text = self.channel.get("title") or self.channel["axis"]["title"]
        return (
            f'<path d="{grid}" stroke="{_LOOKS["gridColor"]}" opacity="{_LOOKS["gridOpacity"]}"/>'
            f'<path d="{ticks}" stroke="{_LOOKS["domainColor"]}" fill="none"/>'
            f'<g text-anchor="{"end" if self.is_y else "middle"}" fill="{_LOOKS["labelColor"]}">{labels}</g>'
            f'<text text-anchor="middle" fill="{_LOOKS["titleColor"]}" {title}>{escape(text)}</text>'
        )
