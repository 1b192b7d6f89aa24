"""Observes runs of tests inside a sandbox. The host sends these modules as text.

They run under the Python of the project's environment, 3.8 or newer, with the standard library and
pytest only, and import one another by relative names, as their package has another name there.
"""
