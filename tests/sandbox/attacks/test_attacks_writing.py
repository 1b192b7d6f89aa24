"""Attacks that change what belongs to the host, or gain rights."""

from textwrap import dedent

import pytest
from arena import Arena
from sandbox_fixtures import BACKEND, output

pytestmark = pytest.mark.slow


def test_mounts_are_read_only_without_rights(arena: Arena) -> None:
    arena.assert_refused(
        """
        own = {'/workspace', '/tmp', '/home/agent', '/dev/shm', '/dev/pts', '/opt/gate', '/proc'}
        mounts = [l.split() for l in read('/proc/self/mountinfo').decode().splitlines()]
        attempt('mounts', lambda: [m[4] for m in mounts
            if m[4] not in own and 'ro' not in m[5].split(',')])
        attempt('rights', lambda: [m[4] for m in mounts if 'nosuid' not in m[5].split(',')])
        attempt('files', lambda: [p for p in walk(*own, '/usr', sys.base_prefix, '/dev')
            if not os.path.islink(p) and os.access(p, os.W_OK)])
        """,
        "mounts nothing, rights nothing, files nothing",
    )


@pytest.mark.parametrize("arena", ["", "image root"], indirect=True)
def test_kernel_files_are_read_only(arena: Arena) -> None:
    arena.assert_refused(
        """
        def opens(path):
            with suppress(OSError):
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                return True
        found = []
        for folder, folders, files in os.walk('/proc'):
            folders[:] = [f for f in folders if not f.isdecimal() or folder != '/proc']
            found += [p for p in (os.path.join(folder, f) for f in files) if opens(p)]
        harmless = '/proc/(sys/kernel/ns_last_pid|pressure/.*|thread-self/.*)'  # by what they do
        attempt('files', lambda: [p for p in found if not re.fullmatch(harmless, p)])
        """,
        "files nothing",
    )


def test_files_of_a_read_only_mount_cannot_change(arena: Arena) -> None:
    arena.assert_refused(
        """
        file = os.open('/opt/shown/file', os.O_RDONLY)
        attempt('map', lambda: mmap.mmap(file, 5, mmap.MAP_SHARED, mmap.PROT_WRITE))
        attempt('again', lambda: os.open(f'/proc/self/fd/{file}', os.O_RDWR))
        attempt('truncate', lambda: os.truncate(f'/proc/self/fd/{file}', 0))
        attempt('anonymous', lambda: os.open('/opt/shown', os.O_TMPFILE | os.O_RDWR))
        file = '/opt/shown/file'
        attempt('write', lambda: write(file))
        attempt('create', lambda: open('/opt/shown/new', 'w').close())
        attempt('remove', lambda: os.unlink('/opt/shown/folder/file'))
        attempt('rename', lambda: os.rename(file, '/opt/shown/other'))
        attempt('chmod', lambda: os.chmod('/opt/shown', 0o700))
        attempt('date', lambda: os.utime('/opt/shown'))
        attempt('attribute', lambda: os.setxattr('/opt/shown', 'user.x', b'x'))
        attempt('folder', lambda: os.mkdir('/opt/shown/folder2'))
        """,
        """
        map EACCES, again EROFS, truncate EROFS, anonymous EROFS, write EROFS, create EROFS,
        remove EROFS, rename EROFS, chmod EROFS, date EROFS, attribute EROFS, folder EROFS
        """,
    )


def test_host_files_cannot_be_linked(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('program', lambda: os.link('/usr/bin/env', '/workspace/env'))
        attempt('shown', lambda: os.link('/opt/shown/file', '/tmp/file'))
        os.symlink('/opt/shown/file', '/tmp/link')
        attempt('follow', lambda: write('/tmp/link'))
        attempt('password', lambda: write('/proc/self/root/etc/passwd'))
        """,
        "program EXDEV|EPERM, shown EXDEV|EPERM, follow EROFS, password EROFS|EACCES",
    )


def test_mounts_and_mount_points_cannot_change(arena: Arena) -> None:
    arena.assert_refused(
        """
        def mount(source, target, kind, flags):
            names = [n and ctypes.c_char_p(n.encode()) for n in (source, target, kind)]
            call('mount', *names, flags, None)
        attempt('remount', lambda: mount('', '/', '', 0x20))
        attempt('rebind', lambda: mount('', '/usr', '', 0x1020))
        attempt('tmpfs', lambda: mount('x', '/tmp', 'tmpfs', 0))
        attempt('proc', lambda: mount('x', '/tmp', 'proc', 0))
        attempt('bind', lambda: mount('/tmp', '/usr', '', 0x1000))
        attempt('shared', lambda: mount('', '/', '', 1 << 20))
        attempt('detach', lambda: call('umount2', ctypes.c_char_p(b'/proc'), 2))
        attempt('root', lambda: call('chroot', ctypes.c_char_p(b'/tmp')))
        attempt('groups', lambda: mount('x', '/tmp', 'cgroup2', 0))
        attempt('kernel', lambda: os.mkdir('/sys/fs/cgroup/x'))
        for path in ('/tmp', '/workspace', '/home/agent', '/dev/shm', '/proc'):
            attempt(path, lambda: os.rename(path, path + '2'))
        attempt('remove', lambda: os.rmdir('/opt/shown'))
        attempt('over', lambda: os.rename('/tmp', '/workspace'))
        """,
        """
        remount EPERM, rebind EPERM, tmpfs EPERM, proc EPERM, bind EPERM, shared EPERM, detach
        EPERM, root EPERM, groups EPERM, kernel ENOENT, /tmp EROFS|EBUSY, /workspace
        EROFS|EBUSY, /home/agent EROFS|EBUSY, /dev/shm EROFS|EBUSY, /proc EROFS|EBUSY, remove
        EROFS|EBUSY, over EROFS|EBUSY|EXDEV
        """,
    )


def test_kernel_settings_cannot_change(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('kernel/core_pattern', 'kernel/hostname', 'kernel/modprobe', 'vm/drop_caches',
                     'kernel/ns_last_pid', 'user/max_user_namespaces', 'net/ipv4/ip_forward'):
            attempt(name, lambda: write(f'/proc/sys/{name}', b'1'))
        attempt('sysrq', lambda: write('/proc/sysrq-trigger', b'h'))
        attempt('binfmt', lambda: write('/proc/sys/fs/binfmt_misc/register', b':x:M::x::/bin/sh:'))
        """,
        """
        kernel/core_pattern EACCES|EROFS, kernel/hostname EACCES|EROFS, kernel/modprobe
        EACCES|EROFS|ENOENT, vm/drop_caches EACCES|EROFS, kernel/ns_last_pid
        EACCES|EROFS|EPERM|ENOENT, user/max_user_namespaces EACCES|EPERM, net/ipv4/ip_forward
        EACCES|EROFS, sysrq EACCES|EROFS|ENOENT, binfmt ENOENT|EACCES
        """,
    )


@pytest.mark.parametrize("arena", ["", "image root"], indirect=True)
def test_host_device_nodes_cannot_change(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('null', 'zero', 'full', 'random', 'urandom', 'tty'):
            attempt(name, lambda: os.utime(f'/dev/{name}'))
        attempt('mode', lambda: os.chmod('/dev/null', 0o600))
        attempt('entropy', lambda: fcntl.ioctl(os.open('/dev/random', 2), 0x40045201, bytes(4)))
        attempt('terminal', lambda: os.open('/dev/tty', os.O_RDWR))
        """,
        """
        null EROFS, zero EROFS, full EROFS, random EROFS, urandom EROFS, tty EROFS, mode
        EROFS|EPERM, entropy EPERM, terminal ENXIO
        """,
    )


def test_device_nodes_cannot_be_made(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name, kind, device in (('disk', stat.S_IFBLK, (254, 0)), ('mem', stat.S_IFCHR, (1, 1))):
            for folder in ('/tmp', '/dev/shm', '/workspace'):
                attempt(name, lambda: os.mknod(f'{folder}/x', kind, os.makedev(*device)))
        attempt('fifo', lambda: os.mkfifo('/tmp/fifo'))
        """,
        "disk EPERM, disk EPERM, disk EPERM, mem EPERM, mem EPERM, mem EPERM, fifo DONE",
    )


def test_overlay_marks_have_no_effect(arena: Arena) -> None:
    arena.assert_refused(
        """
        os.mkdir('mine')
        attempt('whiteout', lambda: os.mknod('shared', stat.S_IFCHR, os.makedev(0, 0)))
        for key, value in (('opaque', b'y'), ('redirect', b'/../../../..'), ('metacopy', b'')):
            for folder in ('mine', 'folder'):
                with suppress(OSError):
                    os.setxattr(folder, f'user.overlay.{key}', value)
        attempt('trusted', lambda: os.setxattr('mine', 'trusted.overlay.opaque', b'y'))
        attempt('hidden', lambda: not os.path.exists('folder/inner.txt'))
        attempt('grown', lambda: os.listdir('mine'))
        attempt('work', lambda: os.listdir('/workspace/work'))
        """,
        "whiteout EPERM, trusted EPERM|EOPNOTSUPP, hidden nothing, grown nothing, work ENOENT",
    )


def test_removing_everything_leaves_the_host_whole(arena: Arena) -> None:
    arena.assert_refused(
        """
        roots = [f'/{n}' for n in os.listdir('/') if n not in ('usr', 'proc', 'root', 'opt')]
        args = ['rm', '-rf', *roots, '/usr/bin', '/opt/shown']
        attempt('all', lambda: subprocess.run(args, capture_output=True).returncode == 0)
        attempt('usr', lambda: not os.path.exists('/usr/bin/env'))
        attempt('shown', lambda: not os.path.exists('/opt/shown/file'))
        """,
        "all nothing, usr nothing, shown nothing",
    )


def test_file_system_controls_are_refused(arena: Arena) -> None:
    arena.assert_refused(
        """
        folder = os.open('/usr', os.O_RDONLY)
        for name, request in (('freeze', 0xC0045877), ('trim', 0xC0185879), ('flags', 0x40086602)):
            attempt(name, lambda: fcntl.ioctl(folder, request, bytes(24)))
        own = os.open('/tmp/own', os.O_CREAT | os.O_RDWR)
        attempt('immutable', lambda: fcntl.ioctl(own, 0x40086602, struct.pack('l', 0x10)))
        attempt('handle', lambda: call('open_by_handle_at', folder, bytes(16), 0))
        """,
        """
        freeze EPERM|ENOTTY, trim EPERM|ENOTTY|EOPNOTSUPP, flags
        EPERM|EROFS|ENOTTY|EACCES|EOPNOTSUPP, immutable EPERM|ENOTTY|EOPNOTSUPP, handle EPERM
        """,
    )


def test_setuid_programs_give_no_rights(arena: Arena) -> None:
    arena.assert_refused(
        """
        places = ('/usr', '/bin', '/sbin', '/usr/lib', '/opt/shown')
        attempt('roots', lambda: [p for p in places if not os.statvfs(p).f_flag & os.ST_NOSUID])
        done = subprocess.run(['mount', '-t', 'tmpfs', 'x', '/tmp'], capture_output=True)
        attempt('mount', lambda: done.returncode == 0)
        import shutil
        for place in ('/workspace', '/tmp', '/home/agent', '/dev/shm'):
            shutil.copy('/usr/bin/id', f'{place}/id')
            os.chmod(f'{place}/id', 0o6755)
            attempt(place, lambda: subprocess.check_output([f'{place}/id', '-u']) != b'1000\\n')
        """,
        """
        roots nothing, mount nothing, /workspace nothing, /tmp nothing, /home/agent nothing,
        /dev/shm nothing
        """,
    )


def test_other_users_and_file_capabilities_are_refused(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('setuid', 'setgid', 'seteuid', 'setegid'):
            attempt(name, lambda: getattr(os, name)(0))
        attempt('groups', lambda: os.setgroups([0]))
        attempt('owner', lambda: (open('/tmp/x', 'w').close(), os.chown('/tmp/x', 0, 0)))
        attempt('map', lambda: write('/proc/self/uid_map', b'0 1000 1'))
        open('/tmp/x', 'w').close()
        value = struct.pack('<6I', 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0, 0)[:20]
        attempt('set', lambda: os.setxattr('/tmp/x', 'security.capability', value))
        attempt('ping', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
        """,
        """
        setuid EINVAL|EPERM, setgid EINVAL|EPERM, seteuid EINVAL|EPERM, setegid EINVAL|EPERM,
        groups EPERM|EINVAL, owner EINVAL|EPERM, map EPERM|EACCES, set EPERM, ping
        ESOCKTNOSUPPORT
        """,
    )


@pytest.mark.parametrize("arena", ["", "image root"], indirect=True)
def test_capabilities_cannot_be_gained(arena: Arena) -> None:
    arena.assert_refused(
        """
        names = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')
        lines = dict(l.split(':\\t') for l in read('/proc/self/status').decode().splitlines())
        attempt('held', lambda: [n for n in names if int(lines[n], 16)])
        attempt('unfiltered', lambda: (lines['NoNewPrivs'], lines['Seccomp']) != ('1', '2'))
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        full = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
        def check(answer):
            if answer < 0:
                raise OSError(ctypes.get_errno(), 'prctl')
        attempt('capset', lambda: check(libc.capset(header, full)))
        attempt('ambient', lambda: check(libc.prctl(47, 2, 21, 0, 0)))
        attempt('keep', lambda: check(libc.prctl(8, 1, 0, 0, 0)))
        attempt('privileges', lambda: check(libc.prctl(38, 0, 0, 0, 0)))
        """,
        """
        held nothing, unfiltered nothing, capset EPERM, ambient EPERM, keep EPERM, privileges
        EINVAL
        """,
    )


def test_namespaces_cannot_be_made_or_entered(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('USER', 'NS', 'PID', 'NET', 'IPC', 'UTS', 'CGROUP', 'TIME'):
            flag = dict(USER=1 << 28, NS=1 << 17, PID=1 << 29, NET=1 << 30, IPC=1 << 27,
                        UTS=1 << 26, CGROUP=1 << 25, TIME=1 << 7)[name]
            attempt(name, lambda: call('unshare', flag))
        for flag in (1 << 28, 1 << 29, 1 << 17):
            attempt('clone', lambda: call('clone', flag | 17, 0, 0, 0, 0) or os._exit(0))
        attempt('clone3', lambda: call('clone3', struct.pack('11Q', 1 << 28, *[0] * 10), 88))
        names = os.listdir('/proc/self/ns')
        def enter(path):
            call('setns', os.open(path, os.O_RDONLY), 0)
        attempt('own', lambda: enter('/proc/self/ns/mnt'))
        attempt('init', lambda: enter('/proc/1/ns/mnt'))
        attempt('host', lambda: enter(f'/proc/{FACTS["pid"]}/ns/mnt'))
        own = {n: os.open(f'/proc/self/ns/{n}', os.O_RDONLY) for n in names}
        attempt('parent', lambda: fcntl.ioctl(own['pid'], 0xB702))
        attempt('owner', lambda: fcntl.ioctl(own['user'], 0xB701))
        attempt('next', lambda: fcntl.ioctl(own['mnt'], 0x8010B70C, bytes(16)))
        attempt('previous', lambda: fcntl.ioctl(own['mnt'], 0x8010B70D, bytes(16)))
        """,
        """
        USER EPERM, NS EPERM, PID EPERM, NET EPERM, IPC EPERM, UTS EPERM, CGROUP EPERM, TIME
        EPERM, clone EPERM, clone EPERM, clone EPERM, clone3 ENOSYS, own EPERM, init ENOENT,
        host ENOENT, parent EPERM, owner EPERM, next EPERM|ENOENT|ENOTTY|EINVAL, previous
        EPERM|ENOENT|ENOTTY|EINVAL
        """,
    )


def test_limits_and_priorities_cannot_be_raised(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('NOFILE', 'NPROC', 'FSIZE', 'MEMLOCK', 'SIGPENDING', 'NICE', 'RTPRIO', 'CORE'):
            kind = getattr(resource, f'RLIMIT_{name}')
            hard = resource.getrlimit(kind)[1]
            attempt(name, lambda: resource.setrlimit(kind, (hard + 1, hard + 1)))
        attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -1))
        attempt('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
        attempt('io', lambda: call('ioprio_set', 1, 0, 1 << 13))
        attempt('oom', lambda: write('/proc/self/oom_score_adj', b'-1'))
        """,
        """
        NOFILE ValueError|EPERM, NPROC ValueError|EPERM, FSIZE ValueError|EPERM, MEMLOCK
        ValueError|EPERM, SIGPENDING ValueError|EPERM, NICE ValueError|EPERM, RTPRIO
        ValueError|EPERM, CORE ValueError|EPERM|nothing|DONE, nice EACCES|EPERM, fifo EPERM, io
        EPERM, oom EACCES
        """,
    )


def test_crashes_start_no_crash_handler(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('limit', lambda: resource.getrlimit(resource.RLIMIT_CORE) != (1, 1))
        for limits in ((0, 0), (0, 1)):
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_CORE, limits)
            with suppress(OSError, ValueError):
                resource.prlimit(0, resource.RLIMIT_CORE, limits)
        attempt('changed', lambda: resource.getrlimit(resource.RLIMIT_CORE) != (1, 1))
        attempt('crash', lambda: child(os.abort) != -signal.SIGABRT)
        attempt('dump', lambda: [n for n in os.listdir('.') if n.startswith('core')])
        """,
        "limit nothing, changed nothing, crash nothing, dump nothing",
    )


def test_attributes_of_the_overlay_hide_and_show_no_file(arena: Arena) -> None:
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
def test_root_of_an_image_is_nobody_outside(arena: Arena) -> None:
    with arena.open() as attacker:
        assert output(attacker, "id -u; touch /opt/gate/made") == "0\n"
        facts = (arena.host.gate / "made").stat()
        assert (facts.st_uid, facts.st_gid) == BACKEND.owner()
        assert facts.st_uid != 0
        (arena.host.gate / "made").unlink()


@pytest.mark.parametrize("arena", ["image root"], indirect=True)
def test_no_mount_of_an_image_gives_rights_or_devices(arena: Arena) -> None:
    with arena.open() as attacker:
        lines = attacker.read_file("/proc/self/mountinfo").decode().splitlines()
    options = {line.split()[4]: set(line.split()[5].split(",")) for line in lines}
    assert all("nosuid" in flags for flags in options.values())
    devices = {place for place, flags in options.items() if "nodev" not in flags}
    assert all(place == "/dev" or place.startswith("/dev/") for place in devices)
