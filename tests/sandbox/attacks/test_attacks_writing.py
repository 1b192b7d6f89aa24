"""Attacks that change files of the host, or gain rights."""

from textwrap import dedent

import pytest
from arena import Arena
from sandbox_fixtures import BACKEND, output

pytestmark = pytest.mark.slow

ATTACKS = {
    "mounts are read only without rights": """
    own = {'/workspace', '/tmp', '/home/agent', '/dev/shm', '/dev/pts', '/opt/gate', '/proc'}
    mounts = [l.split() for l in read('/proc/self/mountinfo').decode().splitlines()]
    attempt('mounts nothing', lambda: [m[4] for m in mounts
        if m[4] not in own and 'ro' not in m[5].split(',')])
    attempt('rights nothing', lambda: [m[4] for m in mounts if 'nosuid' not in m[5].split(',')])
    attempt('files nothing', lambda: [p for p in walk(*own, '/usr', sys.base_prefix, '/dev')
        if not os.path.islink(p) and os.access(p, os.W_OK)])
    """,
    "kernel files are read only": """
    def opens(path):
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            return True
    found = []
    for folder, folders, files in os.walk('/proc'):
        folders[:] = [f for f in folders if not f.isdecimal() or folder != '/proc']
        found += [p for p in (os.path.join(folder, f) for f in files) if opens(p)]
    harmless = '/proc/(sys/kernel/ns_last_pid|pressure/.*|thread-self/.*)'  # by what they do
    attempt('files nothing', lambda: [p for p in found if not re.fullmatch(harmless, p)])
    """,
    "files of a read only mount cannot change": """
    file = os.open('/opt/shown/file', os.O_RDONLY)
    attempt('map EACCES', lambda: mmap.mmap(file, 5, mmap.MAP_SHARED, mmap.PROT_WRITE))
    attempt('again EROFS', lambda: os.open(f'/proc/self/fd/{file}', os.O_RDWR))
    attempt('truncate EROFS', lambda: os.truncate(f'/proc/self/fd/{file}', 0))
    """,
    "mount points cannot be moved": """
    attempt('kernel ENOENT', lambda: os.mkdir('/sys/fs/cgroup/x'))
    for path in ('/tmp', '/workspace', '/home/agent', '/dev/shm', '/proc'):
        attempt(f'{path} EROFS|EBUSY', lambda: os.rename(path, path + '2'))
    attempt('remove EROFS|EBUSY', lambda: os.rmdir('/opt/shown'))
    attempt('over EROFS|EBUSY|EXDEV', lambda: os.rename('/tmp', '/workspace'))
    """,
    "host device nodes cannot change": """
    for name in ('null', 'zero', 'full', 'random', 'urandom', 'tty'):
        attempt(f'{name} EROFS', lambda: os.utime(f'/dev/{name}'))
    attempt('mode EROFS|EPERM', lambda: os.chmod('/dev/null', 0o600))
    random = os.open('/dev/random', os.O_RDWR)
    attempt('entropy EPERM', lambda: fcntl.ioctl(random, 0x40045201, bytes(4)))
    attempt('terminal ENXIO', lambda: os.open('/dev/tty', os.O_RDWR))
    """,
    "other users and file capabilities are refused": """
    for name in ('setuid', 'setgid', 'seteuid', 'setegid'):
        attempt(f'{name} EINVAL|EPERM', lambda: getattr(os, name)(0))
    attempt('groups EPERM|EINVAL', lambda: os.setgroups([0]))
    attempt('owner EINVAL|EPERM', lambda: (open('/tmp/x', 'w').close(), os.chown('/tmp/x', 0, 0)))
    attempt('map EPERM|EACCES', lambda: write('/proc/self/uid_map', b'0 1000 1'))
    open('/tmp/x', 'w').close()
    value = struct.pack('<6I', 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0, 0)[:20]
    attempt('set EPERM', lambda: os.setxattr('/tmp/x', 'security.capability', value))
    attempt('ping ESOCKTNOSUPPORT', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    """,
    "capabilities cannot be gained": """
    names = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')
    lines = dict(l.split(':\\t') for l in read('/proc/self/status').decode().splitlines())
    attempt('held nothing', lambda: [n for n in names if int(lines[n], 16)])
    attempt('unfiltered nothing', lambda: (lines['NoNewPrivs'], lines['Seccomp']) != ('1', '2'))
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    full = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    def check(answer):
        if answer < 0:
            raise OSError(ctypes.get_errno(), 'prctl')
    attempt('capset EPERM', lambda: check(libc.capset(header, full)))
    attempt('ambient EPERM', lambda: check(libc.prctl(47, 2, 21, 0, 0)))
    attempt('keep EPERM', lambda: check(libc.prctl(8, 1, 0, 0, 0)))
    attempt('privileges EINVAL', lambda: check(libc.prctl(38, 0, 0, 0, 0)))
    """,
    "namespaces lead to no others": """
    own = {n: os.open(f'/proc/self/ns/{n}', os.O_RDONLY) for n in ('pid', 'user', 'mnt')}
    attempt('parent EPERM', lambda: fcntl.ioctl(own['pid'], 0xB702))
    attempt('owner EPERM', lambda: fcntl.ioctl(own['user'], 0xB701))
    for name, request in (('next', 0x8010B70C), ('previous', 0x8010B70D)):
        attempt(f'{name} EPERM|ENOENT|ENOTTY|EINVAL',
                lambda: fcntl.ioctl(own['mnt'], request, bytes(16)))
    """,
    "limits and priorities cannot be raised": """
    for name in ('NOFILE', 'NPROC', 'FSIZE', 'MEMLOCK', 'SIGPENDING', 'NICE', 'RTPRIO'):
        kind = getattr(resource, f'RLIMIT_{name}')
        hard = resource.getrlimit(kind)[1]
        attempt(f'{name} ValueError|EPERM', lambda: resource.setrlimit(kind, (hard + 1,) * 2))
    attempt('nice EACCES|EPERM', lambda: os.setpriority(os.PRIO_PROCESS, 0, -1))
    attempt('fifo EPERM', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
    attempt('io EPERM', lambda: call('ioprio_set', 1, 0, 1 << 13))
    attempt('oom EACCES', lambda: write('/proc/self/oom_score_adj', b'-1'))
    """,
    "crashes start no crash handler": """
    attempt('limit nothing', lambda: resource.getrlimit(resource.RLIMIT_CORE) != (1, 1))
    for limits in ((0, 0), (0, 1)):
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, limits)
        with suppress(OSError, ValueError):
            resource.prlimit(0, resource.RLIMIT_CORE, limits)
    attempt('changed nothing', lambda: resource.getrlimit(resource.RLIMIT_CORE) != (1, 1))
    attempt('crash nothing', lambda: child(os.abort) != -signal.SIGABRT)
    attempt('dump nothing', lambda: [n for n in os.listdir('.') if n.startswith('core')])
    """,
}
# Attacks that root of an image tries too.
_OF_ROOT = (
    "kernel files are read only",
    "host device nodes cannot change",
    "capabilities cannot be gained",
)


@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
def test_host_files_and_rights_do_not_change(arena: Arena, script: str) -> None:
    arena.assert_refused(script)


@pytest.mark.parametrize("arena", ["image root"], indirect=True)
@pytest.mark.parametrize("name", _OF_ROOT)
def test_image_root_changes_no_host_file_and_gains_no_rights(arena: Arena, name: str) -> None:
    arena.assert_refused(ATTACKS[name])


def test_overlay_attributes_of_a_command_have_no_effect(arena: Arena) -> None:
    script = """
    import os
    for path in ("folder", "shared.txt", "."):
        for name in ("opaque", "redirect", "metacopy", "whiteout", "overlay.opaque"):
            os.setxattr(path, f"user.overlay.{name}", b"y")
    """
    look = "find . | sort; cat shared.txt folder/inner.txt"
    with arena.open() as attacker:
        before = attacker.run(look).output
        result = attacker.run_python(dedent(script))
        assert result.ok or "Operation not supported" in result.output
        assert attacker.run(look).output == before
        attacker.restore(attacker.snapshot())
        assert attacker.run(look).output == before


@pytest.mark.parametrize("arena", ["image root"], indirect=True)
def test_root_of_an_image_is_unprivileged_on_the_host(arena: Arena) -> None:
    with arena.open() as attacker:
        assert output(attacker, "id -u; touch /opt/gate/made") == "0\n"
        facts = (arena.host.gate / "made").stat()
        assert (facts.st_uid, facts.st_gid) == BACKEND.owner()
        assert facts.st_uid != 0
        (arena.host.gate / "made").unlink()


@pytest.mark.parametrize("arena", ["image root"], indirect=True)
def test_mounts_of_an_image_give_no_rights_or_devices(arena: Arena) -> None:
    with arena.open() as attacker:
        lines = attacker.read_file("/proc/self/mountinfo").decode().splitlines()
    options = {line.split()[4]: set(line.split()[5].split(",")) for line in lines}
    assert all("nosuid" in flags for flags in options.values())
    devices = {place for place, flags in options.items() if "nodev" not in flags}
    assert all(place == "/dev" or place.startswith("/dev/") for place in devices)
