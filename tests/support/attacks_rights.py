"""Gaining rights: setuid programs, capabilities, users, namespaces."""

from attack import Attack

ATTACKS = (
    Attack(
        name="setuid programs",
        script="""
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
        report="""roots nothing, mount nothing, /workspace nothing, /tmp nothing,
            /home/agent nothing, /dev/shm nothing""",
    ),
    Attack(
        name="other users and capabilities of files",
        script="""
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
        report="""setuid EINVAL|EPERM, setgid EINVAL|EPERM, seteuid EINVAL|EPERM,
            setegid EINVAL|EPERM, groups EPERM|EINVAL, owner EINVAL|EPERM, map EPERM|EACCES,
            set EPERM, ping ESOCKTNOSUPPORT""",
    ),
    Attack(
        name="capabilities",
        script="""
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
        attempt('new privileges', lambda: check(libc.prctl(38, 0, 0, 0, 0)))
        """.replace("new privileges", "privileges"),
        report="""held nothing, unfiltered nothing, capset EPERM, ambient EPERM, keep EPERM,
            privileges EINVAL""",
        ablation="sandbox",
        succeeds="keep unfiltered",
    ),
    Attack(
        name="namespaces",
        script="""
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
        report="""USER EPERM, NS EPERM, PID EPERM, NET EPERM, IPC EPERM, UTS EPERM, CGROUP EPERM,
            TIME EPERM, clone EPERM, clone EPERM, clone EPERM, clone3 ENOSYS, own EPERM,
            init ENOENT, host ENOENT, parent EPERM, owner EPERM, next EPERM|ENOENT|ENOTTY|EINVAL,
            previous EPERM|ENOENT|ENOTTY|EINVAL""",
    ),
    Attack(
        name="limits and ranks",
        script="""
        for name in ('NOFILE', 'NPROC', 'FSIZE', 'MEMLOCK', 'SIGPENDING', 'NICE', 'RTPRIO', 'CORE'):
            kind = getattr(resource, f'RLIMIT_{name}')
            hard = resource.getrlimit(kind)[1]
            attempt(name, lambda: resource.setrlimit(kind, (hard + 1, hard + 1)))
        attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -1))
        attempt('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
        attempt('io', lambda: call('ioprio_set', 1, 0, 1 << 13))
        attempt('oom', lambda: write('/proc/self/oom_score_adj', b'-1'))
        """,
        report="""NOFILE ValueError|EPERM, NPROC ValueError|EPERM, FSIZE ValueError|EPERM,
            MEMLOCK ValueError|EPERM, SIGPENDING ValueError|EPERM, NICE ValueError|EPERM,
            RTPRIO ValueError|EPERM, CORE ValueError|EPERM|nothing|DONE, nice EACCES|EPERM,
            fifo EPERM, io EPERM, oom EACCES""",
    ),
    Attack(
        name="a crash that starts the host's crash handler",
        script="""
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
        report="limit nothing, changed nothing, crash nothing, dump nothing",
    ),
)
