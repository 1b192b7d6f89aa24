"""What test programs print or leave behind, read as statuses by test id.

All of this is text that the code under test could have printed itself. What each format can tell of
each module describes its forgeries, and those that remain are in ``docs/threat-model.md``.
"""
