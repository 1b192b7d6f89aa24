"""Attacks through sockets, in both directions."""

import socket

import pytest
from arena import Arena, assert_report
from sandbox_fixtures import python_output

from coding_gym.sandbox.inside import landlock_rules

pytestmark = pytest.mark.slow

_CALL_ABSTRACT = """
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    end = socket.socket(socket.AF_UNIX, kind)
    attempt('call EPERM|ECONNREFUSED', lambda: end.connect('\\0' + FACTS['abstract']))
"""
ATTACKS = {
    "remote machines and names are unreachable": """
    for name, family, address in (('four', 2, '192.0.2.1'), ('six', 10, '2001:db8::1'),
                                  ('metadata', 2, '169.254.169.254'), ('local', 10, 'fe80::1')):
        end = socket.socket(family)
        end.settimeout(2)
        attempt(f'{name} ENETUNREACH|EINVAL|EADDRNOTAVAIL', lambda: end.connect((address, 80)))
    many = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    many.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    attempt('broadcast ENETUNREACH', lambda: many.sendto(b'x', ('255.255.255.255', 9)))
    attempt('multicast ENETUNREACH', lambda: many.sendto(b'x', ('224.0.0.1', 9)))
    for name in ('example.org', 'localhost.example.org', 'host.docker.internal'):
        attempt(f'{name} gaierror', lambda: socket.getaddrinfo(name, 80))
    attempt('servers nothing', lambda: b'nameserver' in read('/etc/resolv.conf'))
    """,
    "other socket families are refused": """
    others = [f for f in range(50) if f not in (1, 2, 10, 16)]
    for family in others:
        attempt(f'{family} EAFNOSUPPORT', lambda: socket.socket(family, socket.SOCK_SEQPACKET))
        attempt(f'{family} EAFNOSUPPORT', lambda: socket.socketpair(family, socket.SOCK_SEQPACKET))
    """,
    "protocols that load modules are refused": """
    for family in (socket.AF_INET, socket.AF_INET6):
        for name, kind, protocol in (
            ('sctp', 1, 132), ('dccp', 6, 33), ('any', 6, 0), ('packets', 5, 0), ('raw', 3, 1),
            ('ping', 2, 1), ('lite', 2, 136), ('l2tp', 2, 115), ('mptcp', 1, 262)):
            attempt(f'{name} EPROTONOSUPPORT|ESOCKTNOSUPPORT',
                    lambda: socket.socket(family, kind, protocol))
        attempt('tcp DONE', lambda: socket.socket(family, 1 | socket.SOCK_CLOEXEC, 6))
    """,
    "network devices cannot change": """
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = struct.pack('16sh22x', b'lo', 0)
    attempt('down EPERM', lambda: fcntl.ioctl(end, 0x8914, request))
    attempt('tunnel ENOENT', lambda: os.open('/dev/net/tun', os.O_RDWR))
    attempt('low EACCES', lambda: socket.create_server(('127.0.0.1', 80)))
    for protocol in (4, 9, 12, 15, 16, 20):  # of the firewall, audit, events of devices ...
        attempt(f'{protocol} EPROTONOSUPPORT',
                lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))
    """,
}


@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
def test_sockets_outside_a_sandbox_are_unreachable(arena: Arena, script: str) -> None:
    arena.assert_refused(script)


@pytest.mark.skipif(landlock_rules.abi() < 6, reason="needs Landlock of Linux 6.12")
def test_builds_with_network_do_not_reach_abstract_names(arena: Arena) -> None:
    own = "import socket; s = socket.socket(1); s.bind('\\0own'); s.listen()\n"
    own += "socket.socket(1).connect('\\0own'); print('own')"
    with arena.open(network=True, forwards={}) as attacker:
        assert_report(arena.run(_CALL_ABSTRACT, attacker).output)
        assert python_output(attacker, own) == "own\n"


def _assert_nobody_listens() -> None:
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 45678)),
        (socket.AF_INET6, ("::1", 45679)),
        (socket.AF_UNIX, "\0attacker-waits-here"),
    ):
        with socket.socket(family) as end, pytest.raises(OSError):
            end.connect(address)


def test_listeners_are_unreachable_from_the_host(arena: Arena) -> None:
    arena.assert_refused(
        """
        listeners = [socket.create_server(('0.0.0.0', 45678)),
                     socket.create_server(('::', 45679), family=socket.AF_INET6)]
        local = socket.socket(socket.AF_UNIX)
        local.bind('\\0attacker-waits-here')
        local.listen()
        hold()
        ready = select.select([*listeners, local], [], [], 0)[0]
        attempt('called nothing', lambda: ready)
        own = socket.create_connection(('127.0.0.1', 45678))
        attempt('itself DONE', lambda: select.select(listeners, [], [], 5)[0])
        """,
        meanwhile=_assert_nobody_listens,
    )
