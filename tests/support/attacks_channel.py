"""Pretending to be the sandbox: output, descriptors and exit codes that look like an answer."""

from attack import Attack
from checks.debug import pack_reply

LIE = pack_reply({"exit_code": 0, "timed_out": False, "head_bytes": 6}, b"forged")

ATTACKS = (
    Attack(
        name="an answer on every descriptor",
        script=f"""
        lie = bytes.fromhex('{LIE.hex()}')
        told = []
        for number in set(range(3, 100)) - {{HERE, GO}}:
            with suppress(OSError):
                told.append(os.write(number, lie))
        attempt('told', lambda: told)
        attempt('send', lambda: socket.socket(fileno=os.dup(1)).send(lie))
        """,
        report="told nothing, send ENOTSOCK",
    ),
    Attack(
        name="reading back what the owner has not seen",
        script="""
        back = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)
        attempt('back', lambda: os.read(back, 100))
        attempt('owner', lambda: fcntl.fcntl(1, fcntl.F_SETOWN, FACTS['owner_pid']))
        attempt('size', lambda: fcntl.fcntl(1, 1031, 1 << 30))
        """,
        report="back EAGAIN|nothing, owner ESRCH|DONE, size EPERM",
    ),
)
