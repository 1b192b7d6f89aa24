"""Code of the processes that serve sandboxes.

    owner          the process that opens a sandbox; the sandbox ends with it
    zygote         started by the owner; opens all of the owner's sandboxes of one kind
    server         the second process of a ``namespace`` zygote; clones first processes
    first process  serves one sandbox; with ``namespace`` it is pid 1, *init*
    watchdog       the parent of a ``landlock`` first process; kills its processes

Modules here import only the standard library and each other: `__main__` runs under
``python -I -S``, and everything is loaded before the host's files are unmounted. The modules of a
``namespace`` zygote do not import `threading`, whose stored thread ids would be wrong in forks.

    __main__   imports the modules of this folder without the package around it
    owner      a zygote's connection to its owner: requests, detection of the owner's end
    fixed      constants of sandboxes: paths, user, date, exit codes
    request    requests for sandboxes; the owner imports this module too
    server     the zygote of ``namespace``: leaves the host's namespaces, clones a sandbox for each
               request, and runs the steps of its set-up
    preloaded  imports modules in advance, and runs Python source in forks of the first process
    host_folders the allow-listed host folders of a sandbox's root, and folders mounted on request
    mounts     the per-sandbox mounts: overlay, /tmp, /proc, requested mounts
    roots      the two kinds of root: host folders, or an image
    lockdown   restrictions of init: name, network, capabilities, limits, seccomp
    serving    the first process: replies to its owner, runs commands, kills their leftovers
    commands   one command: the start of its bash, its output, its end and limits
    processes  lists, reaps and kills the sandbox's processes, and checks their memory
    files      reading and writing one file, removing folders
    packing    writes a sandbox's changed files to the owner's file, and restores them
    syscalls   system calls that Python lacks, numbers of system calls, named steps of a set-up
    seccomp    the filters on system calls
    wire       messages to and from the owner
    landlock_server  the zygote, watchdogs and first processes of ``landlock``
    landlock_rules   Landlock rules
"""
