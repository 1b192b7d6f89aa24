"""Finding files of the host, of the package, or of another episode."""

import pytest
from arena import Arena
from attack import Attack

ATTACKS = (
    Attack(
        name="a search of every file",
        script="""
        attempt('marker', lambda: [p for p in walk("/proc", "/sys", "/usr", sys.base_prefix)
            if holds(p, needle())])
        """,
        held="marker nothing",
        weaker="shown",
    ),
    Attack(
        name="files by their names on the host",
        script="""
        attempt('key', lambda: read(FACTS['folder'] + '/secrets/key'))
        attempt('ssh', lambda: read(FACTS['folder'] + '/secrets/.ssh/id_ed25519'))
        attempt('layer', lambda: read(FACTS['folder'] + '/layer/shared.txt'))
        """,
        held="key ENOENT, ssh ENOENT, layer ENOENT",
        weaker="shown",
    ),
    Attack(
        name="shared memory of the host",
        script="""
        attempt('shm', lambda: read('/dev/shm/' + os.path.basename(FACTS['folder'])))
        """,
        held="shm ENOENT",
        weaker="host",
    ),
    Attack(
        name="home folders",
        script="""
        names = '.ssh .netrc .aws .bashrc .profile .bash_history .cache .config .gnupg'
        homes = (FACTS['home'], '/root', *glob.glob('/home/*'))
        attempt('found', lambda: [n for h in homes for n in names.split()
            if os.path.lexists(f'{h}/{n}')])
        attempt('homes', lambda: [h for h in os.listdir('/home') if h != 'agent'])
        """,
        held="found nothing, homes nothing",
    ),
    Attack(
        name="accounts and keys of the system",
        script="""
        for name in ('shadow', 'gshadow', 'sudoers', 'ssh', 'machine-id', 'fstab'):
            attempt(name, lambda: os.stat(f'/etc/{name}'))
        private = glob.glob('/etc/ssl/private') + glob.glob('/etc/pki/**/private', recursive=True)
        attempt('private', lambda: [n for p in private for n in os.listdir(p)])
        """,
        held="""
            shadow ENOENT, gshadow ENOENT, sudoers ENOENT, ssh ENOENT, machine-id ENOENT,
            fstab ENOENT, private nothing
        """,
    ),
    Attack(
        name="logs and logins",
        script="""
        for name in ('/var/log', '/var/run/utmp', '/run/systemd', '/var/lib'):
            attempt(name, lambda: os.stat(name))
        """,
        held="/var/log ENOENT, /var/run/utmp ENOENT, /run/systemd ENOENT, /var/lib ENOENT",
        weaker="host",
        falls="/var/log /var/lib",
    ),
    Attack(
        name="sockets in the file system",
        script="""
        attempt('sockets', lambda: [p for p in walk('/proc', '/usr', sys.base_prefix)
            if stat.S_ISSOCK(os.lstat(p).st_mode)])
        end = socket.socket(socket.AF_UNIX)
        attempt('call', lambda: end.connect(FACTS['folder'] + '/secrets/socket'))
        """,
        held="sockets nothing, call ENOENT",
        weaker="shown",
    ),
    Attack(
        name="this package",
        script="""
        import importlib
        attempt('import', lambda: importlib.import_module('coding_gym'))
        attempt('folder', lambda: os.listdir(FACTS['package']))
        attempt('name', lambda: [p for p in walk('/proc') if 'coding_gym' in p.lower()])
        """,
        held="import ModuleNotFoundError, folder ENOENT, name nothing",
    ),
    Attack(
        name="places that a sandbox is built from",
        script="""
        for name in ('.old', 'shown', 'episode', 'parts', 'host', 'sys', 'boot', 'mnt'):
            attempt(name, lambda: os.stat('/' + name))
        """,
        held="""
            .old ENOENT, shown ENOENT, episode ENOENT, parts ENOENT, host ENOENT, sys
            ENOENT, boot ENOENT, mnt ENOENT
        """,
        weaker="host",
        falls="sys boot mnt",
    ),
    Attack(
        name="host paths of layers in the tables of mounts",
        script="""
        for name in ('mountinfo', 'mounts', 'mountstats'):
            attempt(name, lambda: FACTS['folder'] + '/layer' in read(f'/proc/self/{name}').decode())
        """,
        held="mountinfo nothing, mounts nothing, mountstats nothing",
    ),
)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_no_file_of_others_can_be_found(attack: Attack, arena: Arena) -> None:
    arena.hold_off(attack)


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.weaker], ids=str)
def test_the_same_script_finds_what_is_not_hidden(attack: Attack, arena: Arena) -> None:
    arena.fall_to(attack)
