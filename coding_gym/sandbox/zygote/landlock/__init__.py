"""The processes of one ``landlock`` sandbox; as stand-alone as the rest of the zygote's folder.

__main__     finds the modules without importing the package around them
guardian     outside the confinement: dies with the owner, ends what is left, removes the files
init         inside: gives up its rights, then serves run, read, write, snapshot and restore
rights       the Landlock system calls, and what each version of the kernel's interface can
sealing      users, limits, system calls: what init gives up besides the rights on files
launching      how bash starts, in a domain of its own below that of init
notifications  permissions, owners and dates of files, new processes: granted inside only
metadata       the calls that change those
"""
