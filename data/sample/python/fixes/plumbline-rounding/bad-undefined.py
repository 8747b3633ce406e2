def round_half_even(numerator, denominator):
    """The whole number nearest to the fraction; of two equally near ones the even one."""
    if denominator <= 0:
        raise ValueError("the denominator must be positive")
    return int(Decimal(numerator / denominator).quantize(0, ROUND_HALF_EVEN))
