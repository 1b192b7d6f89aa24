"""Runs in a browser, in one file and in the terminal.

- `index`: a sqlite index of each run, so that runs of any size open at once;
- `pages`: the content of each page as JSON;
- `server`: the pages over HTTP, with live updates;
- `one_file`: the pages in one HTML file;
- `terminal`: an episode in the terminal, or two.
"""
