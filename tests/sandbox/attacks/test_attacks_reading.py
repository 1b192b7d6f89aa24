"""Attacks that look for files and secrets of the host."""

import pytest
from arena import Arena

pytestmark = pytest.mark.slow

ATTACKS = {
    "host files are hidden": """
    places = walk('/proc', '/sys', '/usr', sys.base_prefix)
    attempt('marker nothing', lambda: [p for p in places if holds(p, needle())])
    attempt('key ENOENT', lambda: read(FACTS['folder'] + '/secrets/key'))
    attempt('layer ENOENT', lambda: read(FACTS['folder'] + '/layer/shared.txt'))
    """,
    "logs and logins are hidden": """
    for name in ('/var/log', '/var/run/utmp', '/run/systemd', '/var/lib'):
        attempt(f'{name} ENOENT', lambda: os.stat(name))
    """,
    "homes accounts and keys are hidden": """
    names = '.ssh .netrc .aws .bashrc .profile .bash_history .cache .config .gnupg'
    homes = (FACTS['home'], '/root', *glob.glob('/home/*'))
    attempt('found nothing', lambda: [n for h in homes for n in names.split()
        if os.path.lexists(f'{h}/{n}')])
    attempt('homes nothing', lambda: [h for h in os.listdir('/home') if h != 'agent'])
    for name in ('shadow', 'gshadow', 'sudoers', 'ssh', 'machine-id', 'fstab'):
        attempt(f'{name} ENOENT', lambda: os.stat(f'/etc/{name}'))
    private = glob.glob('/etc/ssl/private') + glob.glob('/etc/pki/**/private', recursive=True)
    attempt('private nothing', lambda: [n for p in private for n in os.listdir(p)])
    """,
    "sockets in the file system are hidden": """
    attempt('sockets nothing', lambda: [p for p in walk('/proc', '/usr', sys.base_prefix)
        if stat.S_ISSOCK(os.lstat(p).st_mode)])
    end = socket.socket(socket.AF_UNIX)
    attempt('call ENOENT', lambda: end.connect(FACTS['folder'] + '/secrets/socket'))
    """,
    "this package is hidden": """
    import importlib, sysconfig
    attempt('import ModuleNotFoundError', lambda: importlib.import_module('coding_gym'))
    attempt('folder ENOENT', lambda: os.listdir(FACTS['package']))
    packages = sysconfig.get_path('purelib')
    places = [*walk('/proc', '/usr', sys.base_prefix), *os.listdir(packages)]
    attempt('name nothing', lambda: [p for p in places if 'coding_gym' in p.lower()])
    """,
    "host sources of a sandbox are hidden": """
    for name in ('.old', 'shown', 'episode', 'parts', 'host', 'sys', 'boot', 'mnt'):
        attempt(f'{name} ENOENT', lambda: os.stat('/' + name))
    """,
    "mount tables hide host paths of layers": """
    for name in ('mountinfo', 'mounts', 'mountstats'):
        table = read(f'/proc/self/{name}').decode()
        attempt(f'{name} nothing', lambda: FACTS['folder'] + '/layer' in table)
    """,
    "host processes are hidden": """
    attempt('all nothing', lambda: any(needle() in t for t in texts('/proc/[0-9]*/environ')))
    attempt('one ENOENT', lambda: needle() in read(f'/proc/{FACTS["pid"]}/environ'))
    for link in ('cwd/key', f'root{FACTS["folder"]}/layer'):
        attempt(f'{link[:5]} ENOENT', lambda: os.stat(f'/proc/{FACTS["pid"]}/{link}').st_size)
    attempt('victim nothing', lambda: any(b'86400' in t for t in texts('/proc/[0-9]*/cmdline')))
    attempt('exe ENOENT', lambda: os.readlink(f'/proc/{FACTS["pid"]}/exe'))
    """,
    "names of machine and accounts are hidden": """
    for name in ('cmdline', 'keys'):
        attempt(f'{name} nothing', lambda: read(f'/proc/{name}'))
    attempt('name nothing', lambda: socket.gethostname() != 'sandbox')
    attempt('cgroup nothing', lambda: [l for l in read('/proc/self/cgroup').split()
        if not l.endswith(b':/')])
    attempt('accounts nothing', lambda: [l for l in read('/etc/passwd').split()
        if not l.startswith((b'root:', b'agent:', b'nobody:'))])
    attempt('terminals nothing', lambda: [n for n in os.listdir('/dev/pts') if n != 'ptmx'])
    """,
    "logs memory and disks are hidden": """
    attempt('kmsg EACCES|EPERM|ENOENT', lambda: os.open('/proc/kmsg', os.O_RDONLY))
    attempt('device ENOENT', lambda: os.open('/dev/kmsg', os.O_RDONLY))
    for name in ('/proc/kcore', '/dev/mem', '/dev/port', '/dev/kvm', '/dev/fuse'):
        attempt(f'{name} EACCES|EPERM|ENOENT', lambda: os.open(name, os.O_RDONLY))
    attempt('disks nothing', lambda: [e.name for e in os.scandir('/dev')
        if stat.S_ISBLK(e.stat(follow_symlinks=False).st_mode)])
    lines = b''.join(texts('/proc/kallsyms')).splitlines()
    attempt('addresses nothing', lambda: [l for l in lines if int(l.split()[0], 16)])
    """,
    "network tables are empty": """
    port = f'{FACTS["port"]:04X}'.encode()
    attempt('tcp nothing', lambda: port in read('/proc/net/tcp'))
    attempt('unix nothing', lambda: len(read('/proc/net/unix').splitlines()) > 1)
    attempt('devices nothing', lambda: read('/proc/net/dev').count(b':') > 1)
    """,
}


@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
def test_files_and_secrets_of_the_host_are_hidden(arena: Arena, script: str) -> None:
    arena.assert_refused(script)


@pytest.mark.parametrize("arena", ["image root"], indirect=True)
def test_host_sources_are_hidden_from_an_image(arena: Arena) -> None:
    arena.assert_refused(ATTACKS["host sources of a sandbox are hidden"])
