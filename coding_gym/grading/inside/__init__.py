"""Runs tests inside a sandbox. The host sends these modules as text and never executes them.

They run under the Python of the task's environment, with the standard library and pytest only:
`supervisor`, `bootstrap` and `plugin` on Python 3.6 and pytest 4, the others, which make forked
runs, on Python 3.8. They import one another by relative names, as their package has another name
there.
"""
