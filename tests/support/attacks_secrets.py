"""Reading what the kernel and other processes know."""

from attack import Attack

ATTACKS = (
    Attack(
        name="environment of every visible process",
        script="""
        attempt('all', lambda: any(needle() in t for t in texts('/proc/[0-9]*/environ')))
        attempt('one', lambda: needle() in read(f'/proc/{FACTS["pid"]}/environ'))
        """,
        report="all nothing, one ENOENT",
        ablation="sandbox",
    ),
    Attack(
        name="working folder and root of a host process",
        script="""
        for link in ('cwd/key', 'cwd/.ssh/id_ed25519', f'root{FACTS["folder"]}/layer'):
            attempt(link[:5], lambda: os.stat(f'/proc/{FACTS["pid"]}/{link}').st_size)
        """,
        report="cwd/k ENOENT, cwd/. ENOENT, root/ ENOENT",
        ablation="sandbox",
    ),
    Attack(
        name="command lines of other processes",
        script="""
        attempt('victim', lambda: any(b'86400' in t for t in texts('/proc/[0-9]*/cmdline')))
        attempt('exe', lambda: os.readlink(f'/proc/{FACTS["pid"]}/exe'))
        """,
        report="victim nothing, exe ENOENT",
        ablation="sandbox",
    ),
    Attack(
        name="the first process",
        script="""
        for name in ('environ', 'cmdline', 'maps', 'mountinfo', 'status', 'limits'):
            attempt(name, lambda: os.open(f'/proc/1/{name}', os.O_RDONLY))
        """,
        report="""
            environ ENOENT, cmdline ENOENT, maps ENOENT, mountinfo ENOENT, status ENOENT,
            limits ENOENT
        """,
        ablation="hidden init",
    ),
    Attack(
        name="the command line and the keys of the kernel",
        script="""
        for name in ('cmdline', 'keys'):
            attempt(name, lambda: read(f'/proc/{name}'))
        """,
        report="cmdline nothing, keys nothing",
        ablation="sandbox",
        succeeds="cmdline",
    ),
    Attack(
        name="logs of the kernel",
        script="""
        attempt('syslog', lambda: call('syslog', 3, ctypes.create_string_buffer(99), 99))
        attempt('size', lambda: call('syslog', 10, 0, 0))
        attempt('kmsg', lambda: os.open('/proc/kmsg', os.O_RDONLY))
        attempt('device', lambda: os.open('/dev/kmsg', os.O_RDONLY))
        """,
        report="syslog EPERM, size EPERM, kmsg EACCES|EPERM|ENOENT, device ENOENT",
    ),
    Attack(
        name="memory and disks of the machine",
        script="""
        for name in ('/proc/kcore', '/dev/mem', '/dev/port', '/dev/kvm', '/dev/fuse'):
            attempt(name, lambda: os.open(name, os.O_RDONLY))
        attempt('disks', lambda: [e.name for e in os.scandir('/dev')
            if stat.S_ISBLK(e.stat(follow_symlinks=False).st_mode)])
        lines = b''.join(texts('/proc/kallsyms')).splitlines()
        attempt('addresses', lambda: [l for l in lines if int(l.split()[0], 16)])
        """,
        report="""
            /proc/kcore EACCES|EPERM|ENOENT, /dev/mem ENOENT, /dev/port ENOENT, /dev/kvm
            ENOENT, /dev/fuse ENOENT, disks nothing, addresses nothing
        """,
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
        name="names of machine, cgroup and accounts",
        script="""
        attempt('name', lambda: socket.gethostname() != 'sandbox')
        attempt('cgroup', lambda: [l for l in read('/proc/self/cgroup').split()
            if not l.endswith(b':/')])
        attempt('accounts', lambda: [l for l in read('/etc/passwd').split()
            if not l.startswith((b'root:', b'agent:', b'nobody:'))])
        attempt('terminals', lambda: [n for n in os.listdir('/dev/pts') if n != 'ptmx'])
        """,
        report="name nothing, cgroup nothing, accounts nothing, terminals nothing",
        ablation="sandbox",
        succeeds="name accounts",
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
