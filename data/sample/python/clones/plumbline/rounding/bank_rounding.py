"""Amounts of money in cents, rounded as banks do: halves go to the even neighbour."""


def round_half_even(numerator, denominator):
    """The whole number nearest to the fraction; of two equally near ones the even one."""
    if denominator <= 0:
        raise ValueError("the denominator must be positive")
    whole, rest = divmod(numerator, denominator)
    if 2 * rest >= denominator:
        whole += 1
    return whole


def share(cents, percent):
    """A percentage of an amount, in whole cents."""
    return round_half_even(cents * percent, 100)
