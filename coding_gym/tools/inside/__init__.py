"""Programs that tools run inside the sandbox, on trees that a policy wrote; the host sends them.

They need Python 3.7 and its standard library, and pytest where they run tests. Each module that can
be asked has ``answer(request, reply)``: ``request`` is a JSON object, and ``reply`` is called once
with another.
"""
