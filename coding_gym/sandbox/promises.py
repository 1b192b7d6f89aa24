"""The promises of a sandbox beyond its protocol; on some machines it may lack some of them."""

from enum import StrEnum


class Promise(StrEnum):
    """One kind of isolation or bound; its text is what a person reads.

    A backend's probe names those that it does not keep on this machine. The conformance checks
    hold it to the others, and to having named the rest.
    """

    HOST_FILES = "host files are out of reach"
    HOST_PROCESSES = "host processes are out of reach"
    NO_NETWORK = "no network"
    NO_PRIVILEGES = "no privileges to gain"
    SYSTEM_CALLS = "dangerous system calls are refused"
    NO_ESCAPED_PROCESSES = "processes that leave their session end with the command"
    DISK_LIMIT = "disk limit"
    INODE_LIMIT = "limit on the number of files"
    PROCESS_LIMIT = "process limit"
    MEMORY_LIMIT = "memory limit"
    CPU_LIMIT = "cpu limit"
    FOLDER_RENAMES = "os.rename of a folder that came with the layers"
    FIXED_PATHS = "paths that are the same in every sandbox"
    PRIVATE_TMP = "a /tmp and a /dev/shm of its own"
    PERSISTENT_SHELL = "a shell that lasts from command to command"
    SMALL_SNAPSHOTS = "snapshots that are as large as what changed"
    OWN_IMAGE = "images"
    OWN_PYTHON = "the spec's interpreter, whatever the image has"
    ENDS_WITH_OWNER = "ends at once with its owner, however that dies"
