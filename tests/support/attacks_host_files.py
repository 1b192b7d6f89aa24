"""Finding files of the host, of the package, or of another episode."""

from attack import Attack

ATTACKS = (
    Attack(
        name="files of the host",
        script="""
        attempt('marker', lambda: [p for p in walk("/proc", "/sys", "/usr", sys.base_prefix)
            if holds(p, needle())])
        attempt('key', lambda: read(FACTS['folder'] + '/secrets/key'))
        attempt('ssh', lambda: read(FACTS['folder'] + '/secrets/.ssh/id_ed25519'))
        attempt('layer', lambda: read(FACTS['folder'] + '/layer/shared.txt'))
        """,
        report="marker nothing, key ENOENT, ssh ENOENT, layer ENOENT",
        ablation="private root",
    ),
    Attack(
        name="shared memory, logs and logins",
        script="""
        attempt('shm', lambda: read('/dev/shm/' + os.path.basename(FACTS['folder'])))
        for name in ('/var/log', '/var/run/utmp', '/run/systemd', '/var/lib'):
            attempt(name, lambda: os.stat(name))
        """,
        report="""shm ENOENT, /var/log ENOENT, /var/run/utmp ENOENT, /run/systemd ENOENT,
            /var/lib ENOENT""",
        ablation="sandbox",
        succeeds="shm /var/log /var/lib",
    ),
    Attack(
        name="home folders, accounts and keys",
        script="""
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
        report="""found nothing, homes nothing, shadow ENOENT, gshadow ENOENT, sudoers ENOENT,
            ssh ENOENT, machine-id ENOENT, fstab ENOENT, private nothing""",
    ),
    Attack(
        name="sockets in the file system",
        script="""
        attempt('sockets', lambda: [p for p in walk('/proc', '/usr', sys.base_prefix)
            if stat.S_ISSOCK(os.lstat(p).st_mode)])
        end = socket.socket(socket.AF_UNIX)
        attempt('call', lambda: end.connect(FACTS['folder'] + '/secrets/socket'))
        """,
        report="sockets nothing, call ENOENT",
        ablation="private root",
    ),
    Attack(
        name="this package",
        script="""
        import importlib, sysconfig
        attempt('import', lambda: importlib.import_module('coding_gym'))
        attempt('folder', lambda: os.listdir(FACTS['package']))
        packages = sysconfig.get_path('purelib')
        places = [*walk('/proc', '/usr', sys.base_prefix), *os.listdir(packages)]
        attempt('name', lambda: [p for p in places if 'coding_gym' in p.lower()])
        """,
        report="import ModuleNotFoundError, folder ENOENT, name nothing",
    ),
    Attack(
        name="places that a sandbox is built from",
        script="""
        for name in ('.old', 'shown', 'episode', 'parts', 'host', 'sys', 'boot', 'mnt'):
            attempt(name, lambda: os.stat('/' + name))
        """,
        report="""
            .old ENOENT, shown ENOENT, episode ENOENT, parts ENOENT, host ENOENT, sys
            ENOENT, boot ENOENT, mnt ENOENT
        """,
        ablation="sandbox",
        succeeds="sys boot mnt",
    ),
    Attack(
        name="host paths of layers in the tables of mounts",
        script="""
        for name in ('mountinfo', 'mounts', 'mountstats'):
            attempt(name, lambda: FACTS['folder'] + '/layer' in read(f'/proc/self/{name}').decode())
        """,
        report="mountinfo nothing, mounts nothing, mountstats nothing",
    ),
)
