"""Displays runs in a browser, in one HTML file and in the terminal.

- `turns`: extracts the displayed parts of a record;
- `index`: reads the episodes of a run;
- `pages`: creates the content of each page as JSON;
- `server`: serves the pages over HTTP;
- `one_file`: writes the pages into one HTML file;
- `terminal`: prints an episode in the terminal.
"""
