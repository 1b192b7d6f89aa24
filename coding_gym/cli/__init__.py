"""The ``coding-gym`` command: parses, calls, prints."""
