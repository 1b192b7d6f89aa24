"""The small process that opens namespace sandboxes, and the first process inside each of them.

Nothing here imports anything outside the standard library and this folder: `__main__` runs under
``python -I -S`` and everything is loaded before the host's files go out of sight.

    __main__   finds the folder's own modules without importing the package around it
    outer      leaves the host's namespaces, forks the server, dies with the owner
    server     pid 1 of the zygote's namespaces: answers "open" by cloning a sandbox
    parts      the allow-listed pieces of a sandbox's root, prepared once
    shelf      host folders (layers, interpreters, mounts) brought into view on request
    room       the per-sandbox mounts: overlay, root, /tmp, /proc
    probe      whether an overlay works whole on a tmpfs of this kernel
    lockdown   capabilities, limits, seccomp: what init gives up before it serves
    init       pid 1 of one sandbox: serves run, read and write
    commands   one shell command: time limit, leftovers
    spawn      how a command starts
    output     output that keeps its head and its tail
    files      reading and writing one file
    syscalls   the system calls that Python lacks
    seccomp    the filter on system calls
    wire       messages between owner, server and init
    scratch    removes what overlays left on a disk
    steps      names for the steps of a set-up, for errors that say which one failed
"""
