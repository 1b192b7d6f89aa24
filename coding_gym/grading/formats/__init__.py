"""What test programs print or leave behind, read as statuses by test id.

All of this is text that the code under test could have printed itself. Each
module describes the forgeries that it detects; ``docs/threat-model.md`` names those that remain.
"""
