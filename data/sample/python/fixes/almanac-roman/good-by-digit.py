"""Roman numerals from 1 to 3999."""

SHAPES = ["", "0", "00", "000", "01", "1", "10", "100", "1000", "02"]
SIGNS = ["IVX", "XLC", "CDM", "M"]
VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def to_roman(number):
    """The numeral, digit by digit from the right."""
    if not 1 <= number <= 3999:
        raise ValueError(f"no numeral for {number}")
    numeral = ""
    for place, digit in enumerate(reversed(str(number))):
        numeral = "".join(SIGNS[place][int(sign)] for sign in SHAPES[int(digit)]) + numeral
    return numeral


def from_roman(numeral):
    """The number. A sign before a greater one is taken off."""
    total = 0
    highest = 0
    for sign in reversed(numeral):
        value = VALUES[sign]
        total += value if value >= highest else -value
        highest = max(highest, value)
    return total
