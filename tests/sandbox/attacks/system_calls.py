"""The system calls that the filter refuses, written independently of the filter.

`test_system_call_numbers_are_those_of_the_kernel` compares the package's numbers with the kernel's.
"""

import platform

from coding_gym.sandbox.inside.syscalls import numbers

MACHINES = ("x86_64", "aarch64")
FIRST_UNKNOWN = 470  # calls from here on are newer than the table

# Calls that fail with EPERM for all arguments.
_REFUSED = """
    ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp mount umount2
    pivot_root chroot setns unshare open_tree move_mount fsopen fsconfig fsmount fspick
    mount_setattr statmount listmount open_tree_attr name_to_handle_at open_by_handle_at add_key
    request_key keyctl bpf perf_event_open userfaultfd io_uring_setup io_uring_enter
    io_uring_register fanotify_init io_setup shmget semget msgget init_module finit_module
    delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl quotactl_fd syslog
    vhangup lookup_dcookie nfsservctl settimeofday adjtimex clock_settime clock_adjtime sethostname
    setdomainname mbind set_mempolicy migrate_pages move_pages vmsplice lsm_set_self_attr
"""
_REFUSED_ON_X86 = "ioperm iopl modify_ldt uselib ustat sysfs _sysctl"
# Allowed calls that attacks use: numbers of x86_64 and aarch64.
_ALLOWED = {
    "ioprio_set": (251, 30),
    "process_mrelease": (448, 448),
    "rt_sigqueueinfo": (129, 138),
    "tgkill": (234, 131),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
}


def refused(machine: str) -> dict[str, int]:
    """Returns the numbers of the calls that the filter of a machine refuses with EPERM."""
    names = f"{_REFUSED} {_REFUSED_ON_X86 if machine == 'x86_64' else ''}"
    return {name: numbers(machine)[name] for name in names.split()}


NUMBERS = {
    **{name: pair[MACHINES.index(platform.machine())] for name, pair in _ALLOWED.items()},
    **numbers(platform.machine()),
}
