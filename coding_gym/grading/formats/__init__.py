"""What test programs print or leave behind, read as statuses by test id.

All of this is text that the code under test could have printed itself. What each format can tell of
a forgery is said in its module, and what remains in ``docs/threat-model.md``.
"""
