"""Attacks that look for files and secrets of the host."""

import pytest
from arena import Arena

pytestmark = pytest.mark.slow


def test_host_files_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('marker', lambda: [p for p in walk("/proc", "/sys", "/usr", sys.base_prefix)
            if holds(p, needle())])
        attempt('key', lambda: read(FACTS['folder'] + '/secrets/key'))
        attempt('ssh', lambda: read(FACTS['folder'] + '/secrets/.ssh/id_ed25519'))
        attempt('layer', lambda: read(FACTS['folder'] + '/layer/shared.txt'))
        """,
        "marker nothing, key ENOENT, ssh ENOENT, layer ENOENT",
    )


def test_shared_memory_logs_and_logins_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('shm', lambda: read('/dev/shm/' + os.path.basename(FACTS['folder'])))
        for name in ('/var/log', '/var/run/utmp', '/run/systemd', '/var/lib'):
            attempt(name, lambda: os.stat(name))
        """,
        """
        shm ENOENT, /var/log ENOENT, /var/run/utmp ENOENT, /run/systemd ENOENT, /var/lib ENOENT
        """,
    )


def test_homes_accounts_and_keys_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        names = '.ssh .netrc .aws .bashrc .profile .bash_history .cache .config .gnupg'
        homes = (FACTS['home'], '/root', *glob.glob('/home/*'))
        attempt('found', lambda: [n for h in homes for n in names.split()
            if os.path.lexists(f'{h}/{n}')])
        attempt('homes', lambda: [h for h in os.listdir('/home') if h != 'agent'])
        for name in ('shadow', 'gshadow', 'sudoers', 'ssh', 'machine-id', 'fstab'):
            attempt(name, lambda: os.stat(f'/etc/{name}'))
        private = glob.glob('/etc/ssl/private') + glob.glob('/etc/pki/**/private', recursive=True)
        attempt('private', lambda: [n for p in private for n in os.listdir(p)])
        """,
        """
        found nothing, homes nothing, shadow ENOENT, gshadow ENOENT, sudoers ENOENT, ssh ENOENT,
        machine-id ENOENT, fstab ENOENT, private nothing
        """,
    )


def test_sockets_in_the_file_system_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('sockets', lambda: [p for p in walk('/proc', '/usr', sys.base_prefix)
            if stat.S_ISSOCK(os.lstat(p).st_mode)])
        end = socket.socket(socket.AF_UNIX)
        attempt('call', lambda: end.connect(FACTS['folder'] + '/secrets/socket'))
        """,
        "sockets nothing, call ENOENT",
    )


def test_this_package_is_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        import importlib, sysconfig
        attempt('import', lambda: importlib.import_module('coding_gym'))
        attempt('folder', lambda: os.listdir(FACTS['package']))
        packages = sysconfig.get_path('purelib')
        places = [*walk('/proc', '/usr', sys.base_prefix), *os.listdir(packages)]
        attempt('name', lambda: [p for p in places if 'coding_gym' in p.lower()])
        """,
        "import ModuleNotFoundError, folder ENOENT, name nothing",
    )


@pytest.mark.parametrize("arena", ["", "image root"], indirect=True)
def test_places_that_a_sandbox_is_built_from_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('.old', 'shown', 'episode', 'parts', 'host', 'sys', 'boot', 'mnt'):
            attempt(name, lambda: os.stat('/' + name))
        """,
        """
        .old ENOENT, shown ENOENT, episode ENOENT, parts ENOENT, host ENOENT, sys ENOENT, boot
        ENOENT, mnt ENOENT
        """,
    )


def test_mount_tables_hide_host_paths_of_layers(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('mountinfo', 'mounts', 'mountstats'):
            attempt(name, lambda: FACTS['folder'] + '/layer' in read(f'/proc/self/{name}').decode())
        """,
        "mountinfo nothing, mounts nothing, mountstats nothing",
    )


def test_host_processes_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('all', lambda: any(needle() in t for t in texts('/proc/[0-9]*/environ')))
        attempt('one', lambda: needle() in read(f'/proc/{FACTS["pid"]}/environ'))
        for link in ('cwd/key', 'cwd/.ssh/id_ed25519', f'root{FACTS["folder"]}/layer'):
            attempt(link[:5], lambda: os.stat(f'/proc/{FACTS["pid"]}/{link}').st_size)
        attempt('victim', lambda: any(b'86400' in t for t in texts('/proc/[0-9]*/cmdline')))
        attempt('exe', lambda: os.readlink(f'/proc/{FACTS["pid"]}/exe'))
        """,
        """
        all nothing, one ENOENT, cwd/k ENOENT, cwd/. ENOENT, root/ ENOENT, victim nothing, exe
        ENOENT
        """,
    )


def test_names_of_machine_and_accounts_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        for name in ('cmdline', 'keys'):
            attempt(name, lambda: read(f'/proc/{name}'))
        attempt('name', lambda: socket.gethostname() != 'sandbox')
        attempt('cgroup', lambda: [l for l in read('/proc/self/cgroup').split()
            if not l.endswith(b':/')])
        attempt('accounts', lambda: [l for l in read('/etc/passwd').split()
            if not l.startswith((b'root:', b'agent:', b'nobody:'))])
        attempt('terminals', lambda: [n for n in os.listdir('/dev/pts') if n != 'ptmx'])
        """,
        """
        cmdline nothing, keys nothing, name nothing, cgroup nothing, accounts nothing, terminals
        nothing
        """,
    )


def test_logs_memory_and_disks_are_hidden(arena: Arena) -> None:
    arena.assert_refused(
        """
        attempt('syslog', lambda: call('syslog', 3, ctypes.create_string_buffer(99), 99))
        attempt('size', lambda: call('syslog', 10, 0, 0))
        attempt('kmsg', lambda: os.open('/proc/kmsg', os.O_RDONLY))
        attempt('device', lambda: os.open('/dev/kmsg', os.O_RDONLY))
        for name in ('/proc/kcore', '/dev/mem', '/dev/port', '/dev/kvm', '/dev/fuse'):
            attempt(name, lambda: os.open(name, os.O_RDONLY))
        attempt('disks', lambda: [e.name for e in os.scandir('/dev')
            if stat.S_ISBLK(e.stat(follow_symlinks=False).st_mode)])
        lines = b''.join(texts('/proc/kallsyms')).splitlines()
        attempt('addresses', lambda: [l for l in lines if int(l.split()[0], 16)])
        """,
        """
        syslog EPERM, size EPERM, kmsg EACCES|EPERM|ENOENT, device ENOENT, /proc/kcore
        EACCES|EPERM|ENOENT, /dev/mem ENOENT, /dev/port ENOENT, /dev/kvm ENOENT, /dev/fuse
        ENOENT, disks nothing, addresses nothing
        """,
    )


def test_network_tables_are_empty(arena: Arena) -> None:
    arena.assert_refused(
        """
        port = f'{FACTS["port"]:04X}'.encode()
        attempt('tcp', lambda: port in read('/proc/net/tcp'))
        attempt('unix', lambda: FACTS['abstract'].encode() in read('/proc/net/unix'))
        attempt('devices', lambda: read('/proc/net/dev').count(b':') > 1)
        """,
        "tcp nothing, unix nothing, devices nothing",
    )


def test_scripts_inherit_no_descriptors(arena: Arena) -> None:
    arena.assert_refused(
        """
        ours = {HERE, GO}
        names = {int(n): f'/proc/self/fd/{n}' for n in os.listdir('/proc/self/fd')}
        attempt('more', lambda: [os.readlink(p) for n, p in names.items()
            if n > 2 and n not in ours and os.path.lexists(p)])
        attempt('standard', lambda: [p for p in map(os.readlink, list(names.values())[:3])
            if p != '/dev/null' and not p.startswith('pipe:')])
        """,
        "more nothing, standard nothing",
    )
