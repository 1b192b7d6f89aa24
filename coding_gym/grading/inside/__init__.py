"""Runs tests inside a sandbox. The host sends these modules as text and never executes them.

They run under the Python of the task's environment, with the standard library and pytest only:
`supervisor`, `bootstrap` and `plugin` support Python 3.6 and pytest 4 or later; the other modules,
which make forked runs, need Python 3.8. They import each other by relative names, because their
package has another name in the sandbox.
"""
