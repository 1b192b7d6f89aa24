"""Numbers of the system calls that the filter refuses, written independently of the filter.

They are copied from the kernel's headers for x86_64 and aarch64; None if aarch64 lacks the call.
"""

import platform

MACHINES = ("x86_64", "aarch64")
FIRST_UNKNOWN = 470  # calls from here on are newer than the table

Rows = dict[str, tuple[int | None, int | None]]


def _rows(text: str) -> Rows:
    rows = (row.split() for row in text.split(","))
    return {name: (int(x86), None if arm == "-" else int(arm)) for name, x86, arm in rows}


# Calls that fail with EPERM for all arguments.
REFUSED = _rows("""
    ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271,
    process_madvise 440 440, pidfd_getfd 438 438, kcmp 312 272, mount 165 40, umount2 166 39,
    pivot_root 155 41, chroot 161 51, setns 308 268, unshare 272 97, open_tree 428 428,
    move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433,
    mount_setattr 442 442, statmount 457 457, listmount 458 458, open_tree_attr 467 467,
    name_to_handle_at 303 264, open_by_handle_at 304 265, add_key 248 217, request_key 249 218,
    keyctl 250 219, bpf 321 280, perf_event_open 298 241, userfaultfd 323 282,
    io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427,
    fanotify_init 300 262, io_setup 206 0, shmget 29 194, semget 64 190, msgget 68 186,
    init_module 175 105, finit_module 313 273, delete_module 176 106, kexec_load 246 104,
    kexec_file_load 320 294, reboot 169 142, swapon 167 224, swapoff 168 225, acct 163 89,
    quotactl 179 60, quotactl_fd 443 443, syslog 103 116, vhangup 153 58, lookup_dcookie 212 18,
    nfsservctl 180 42, settimeofday 164 170, adjtimex 159 171, clock_settime 227 112,
    clock_adjtime 305 266, sethostname 170 161, setdomainname 171 162, mbind 237 235,
    set_mempolicy 238 237, migrate_pages 256 238, move_pages 279 239, vmsplice 278 75,
    lsm_set_self_attr 460 460, ioperm 173 -, iopl 172 -, modify_ldt 154 -, uselib 134 -,
    ustat 136 -, sysfs 139 -, _sysctl 156 -
""")
# Calls with another result, or one that depends on the arguments.
_INSPECTED = _rows("""
    sync 162 81, syncfs 306 267, memfd_create 319 279, memfd_secret 447 447,
    clone 56 220, clone3 435 435, socket 41 198, socketpair 53 199, setrlimit 160 164,
    prlimit64 302 261, ioctl 16 29, fcntl 72 25, setsockopt 54 208, preadv2 327 286,
    mincore 27 232, readahead 187 213, cachestat 451 451, fadvise64 221 223, madvise 28 233
""")
FILTERED = {**REFUSED, **_INSPECTED}
# Allowed calls that attacks use.
_ALLOWED = _rows("""
    ioprio_set 251 30, process_mrelease 448 448, rt_sigqueueinfo 129 138, tgkill 234 131,
    pidfd_open 434 434, pidfd_send_signal 424 424
""")


def numbers(rows: Rows, machine: str) -> dict[str, int]:
    """Returns the numbers of the calls that a machine has."""
    column = MACHINES.index(machine)
    found = ((name, row[column]) for name, row in rows.items())
    return {name: number for name, number in found if number is not None}


NUMBERS = numbers(FILTERED | _ALLOWED, platform.machine())
REFUSED_HERE = numbers(REFUSED, platform.machine())
