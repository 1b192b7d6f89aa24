"""What keeps the commands of a ``landlock`` sandbox in; as stand-alone as the folder above.

rights         the Landlock system calls, and what each version of the kernel's interface can
sealing        users, limits, system calls: what the server gives up besides the rights on files
launching      how bash starts, in a domain of its own below that of the server
notifications  permissions, owners and dates of files, new processes: granted inside only
metadata       the calls that change those
"""
