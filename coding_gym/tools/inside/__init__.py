"""Programs that tools run inside the sandbox, on trees that a policy wrote; the host sends them.

They need Python 3.7 and its standard library, and pytest where they run tests. In the sandbox all
modules are in one package. A function that can be asked takes ``(request, reply)``: ``request`` is
a JSON object, and ``reply``, which ends the process, is called once with another.
"""
