"""System calls that the filter refuses, by their numbers, and ways around the filter."""

from attack import Attack
from system_calls import REFUSED_HERE

_NUMBERS = sorted(REFUSED_HERE.values())

ALL_AT_ONCE = Attack(
    name="all at once",
    script=f"""
    for number in {_NUMBERS}:
        attempt(number, lambda: call(number, 0, 0, 0, 0, 0, 0))
    """,
    report=", ".join(f"{number} EPERM" for number in _NUMBERS),
)
ATTACKS = (
    ALL_AT_ONCE,
    Attack(
        name="the x32 interface",
        script=f"""
        for number in {_NUMBERS}:
            attempt(number, lambda: call(0x40000000 | number, 0, 0, 0, 0, 0, 0))
        attempt('getpid', lambda: call(0x40000000 | 39))
        """,
        report=", ".join([f"{n} ENOSYS" for n in _NUMBERS] + ["getpid ENOSYS"]),
    ),
    Attack(
        name="terminals, leases and everybody's files",
        script="""
        leader, follower = pty.openpty()
        number = struct.pack('i', 13)
        for name, request in (('input', 0x5412), ('linux', 0x541C), ('discipline', 0x5423)):
            attempt(name, lambda: fcntl.ioctl(follower, request, number))
        os.setsid() if os.getpid() != os.getsid(0) else None
        attempt('own', lambda: fcntl.ioctl(follower, termios.TIOCSWINSZ, bytes(8)))
        file = open('/opt/shown/file')
        for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
            attempt('lease', lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, kind))
        attempt('flags', lambda: fcntl.fcntl(file, fcntl.F_GETFD))
        attempt('sync', lambda: call('sync') == 0)
        # Answered before the kernel sees that -1 is no descriptor.
        attempt('syncfs', lambda: call('syncfs', -1) == 0)
        """,
        report="""input EPERM, linux EPERM, discipline EPERM, own DONE, lease EPERM, lease EPERM,
            flags DONE, sync DONE, syncfs DONE""",
    ),
    Attack(
        name="a second filter that lies",
        script="""
        # Calls are answered with success by its own filter; ours is asked too, and is stricter.
        code = struct.pack('HBBI', 6, 0, 0, 0x7FFF0000)
        room = ctypes.create_string_buffer(code, 8)
        class Program(ctypes.Structure):
            _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
        program = Program(1, ctypes.addressof(room))
        attempt('install', lambda: libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0)
        attempt('mount', lambda: call('mount', 0, 0, 0, 0, 0))
        attempt('trace', lambda: call('ptrace', 0, 0, 0, 0))
        """,
        report="install DONE, mount EPERM, trace EPERM",
    ),
)
