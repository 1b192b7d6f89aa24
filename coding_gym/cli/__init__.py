"""The ``coding-gym`` command: parses arguments, calls the package and prints results."""
