"""Receipts of a small shop; all amounts are whole cents."""


def total(amounts, discount_percent=0):
    """Returns the sum of the amounts less a discount, to the nearest cent, halves up."""
    return sum(amounts) * (100 - discount_percent) // 100
