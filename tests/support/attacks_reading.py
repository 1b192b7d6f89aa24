"""Finding files of the host or the package, and reading what its kernel and processes know."""

from attack import Attack

FILES = (
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

SECRETS = (
    Attack(
        name="processes of the host",
        script="""
        attempt('all', lambda: any(needle() in t for t in texts('/proc/[0-9]*/environ')))
        attempt('one', lambda: needle() in read(f'/proc/{FACTS["pid"]}/environ'))
        for link in ('cwd/key', 'cwd/.ssh/id_ed25519', f'root{FACTS["folder"]}/layer'):
            attempt(link[:5], lambda: os.stat(f'/proc/{FACTS["pid"]}/{link}').st_size)
        attempt('victim', lambda: any(b'86400' in t for t in texts('/proc/[0-9]*/cmdline')))
        attempt('exe', lambda: os.readlink(f'/proc/{FACTS["pid"]}/exe'))
        """,
        report="""all nothing, one ENOENT, cwd/k ENOENT, cwd/. ENOENT, root/ ENOENT, victim nothing,
            exe ENOENT""",
        ablation="sandbox",
    ),
    Attack(
        name="names of kernel, machine, cgroup and accounts",
        script="""
        for name in ('cmdline', 'keys'):
            attempt(name, lambda: read(f'/proc/{name}'))
        attempt('name', lambda: socket.gethostname() != 'sandbox')
        attempt('cgroup', lambda: [l for l in read('/proc/self/cgroup').split()
            if not l.endswith(b':/')])
        attempt('accounts', lambda: [l for l in read('/etc/passwd').split()
            if not l.startswith((b'root:', b'agent:', b'nobody:'))])
        attempt('terminals', lambda: [n for n in os.listdir('/dev/pts') if n != 'ptmx'])
        """,
        report="""cmdline nothing, keys nothing, name nothing, cgroup nothing, accounts nothing,
            terminals nothing""",
        ablation="sandbox",
        succeeds="cmdline name accounts",
    ),
    Attack(
        name="logs, memory and disks of the machine",
        script="""
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
        report="""syslog EPERM, size EPERM, kmsg EACCES|EPERM|ENOENT, device ENOENT,
            /proc/kcore EACCES|EPERM|ENOENT, /dev/mem ENOENT, /dev/port ENOENT, /dev/kvm ENOENT,
            /dev/fuse ENOENT, disks nothing, addresses nothing""",
    ),
    Attack(
        name="tables of the network",
        script="""
        port = f'{FACTS["port"]:04X}'.encode()
        attempt('tcp', lambda: port in read('/proc/net/tcp'))
        attempt('unix', lambda: FACTS['abstract'].encode() in read('/proc/net/unix'))
        attempt('devices', lambda: read('/proc/net/dev').count(b':') > 1)
        """,
        report="tcp nothing, unix nothing, devices nothing",
        ablation="network isolation",
        succeeds="tcp unix",
    ),
    Attack(
        name="descriptors that were open at the start",
        script="""
        ours = {HERE, GO}
        names = {int(n): f'/proc/self/fd/{n}' for n in os.listdir('/proc/self/fd')}
        attempt('more', lambda: [os.readlink(p) for n, p in names.items()
            if n > 2 and n not in ours and os.path.lexists(p)])
        attempt('standard', lambda: [p for p in map(os.readlink, list(names.values())[:3])
            if p != '/dev/null' and not p.startswith('pipe:')])
        """,
        report="more nothing, standard nothing",
    ),
)
