"""Runs in a browser, in one file and in the terminal.

- `turns`: the parts of a record that are displayed;
- `index`: the episodes of a run;
- `pages`: the content of each page as JSON;
- `server`: the pages over HTTP;
- `one_file`: the pages in one HTML file;
- `terminal`: an episode in the terminal.
"""
