"""Keeps count of a small stockroom."""

from stockroom.errors import ListError, StockroomError, UnitError
from stockroom.importer import Delivery, read_list
from stockroom.inventory import Inventory, Item
from stockroom.report import render

__all__ = [
    "Delivery",
    "Inventory",
    "Item",
    "ListError",
    "StockroomError",
    "UnitError",
    "read_list",
    "render",
]
