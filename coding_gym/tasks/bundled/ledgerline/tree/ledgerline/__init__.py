"""Plain-text double-entry bookkeeping."""

from ledgerline.amounts import Amount, Balance
from ledgerline.booking import AssertionFailedError, UnbalancedError
from ledgerline.model import Journal, JournalError, Posting, Transaction
from ledgerline.parser import ParseError, parse
from ledgerline.periods import Period
from ledgerline.reports import balance_report, register_report

__all__ = [
    "Amount",
    "AssertionFailedError",
    "Balance",
    "Journal",
    "JournalError",
    "ParseError",
    "Period",
    "Posting",
    "Transaction",
    "UnbalancedError",
    "balance_report",
    "parse",
    "register_report",
]
