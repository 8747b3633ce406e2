"""Roman numerals from 1 to 3999."""

SIGNS = [
    (1000, "M"),
    (500, "D"),
    (100, "C"),
    (50, "L"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
]


def to_roman(number):
    """The numeral, in the short form: 4 is IV."""
    if not 1 <= number <= 3999:
        raise ValueError(f"no numeral for {number}")
    numeral = ""
    for value, sign in SIGNS:
        count, number = divmod(number, value)
        numeral += sign * count
    return numeral


def from_roman(numeral):
    """The number. A sign before a greater one is taken off."""
    values = {sign: value for value, sign in SIGNS if len(sign) == 1}
    total = 0
    for place, sign in enumerate(numeral):
        value = values[sign]
        following = values[numeral[place + 1]] if place + 1 < len(numeral) else 0
        total += -value if value < following else value
    return total
