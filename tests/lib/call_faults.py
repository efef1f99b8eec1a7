# SPDX-License-Identifier: Apache-2.0
"""Launches in which one system call fails once, judged (for every-call-can-fail.sh).

    call_faults.py --all [REGEX] | --sample N | --named TRY...

TRY: "SCENARIO/ROLE/CALL[:KIND]/N/HOW[@TEXT] VERDICT WORDS": the words must be on standard error. VERDICT "unused":
the launch is right, and no such call is made.

Runs each scenario once to count the calls (tests/lib/inject.c), makes the table of tries, and runs a seeded
sample of it, or all, or the tries that are named. Each try has folders of its own, and is judged:

    right    exit 0, and output, log folder and verdict are right
    told     another exit code, which the last line tells with a reason
    hang     no end within the limit, also when it is repeated alone
    crash    ended by a signal or a sanitizer; or the agent was, and the head says no more than that
    silent   exit 0 and something is wrong, or another code that nobody explains
    left     processes are left, or files that no warning names

Prints a line "ok NAME" or "not ok NAME" for each try, with comments, and the table of --all. Environment:
INJECT, HNLAUNCH, HELLO (a program that uses the store), WORK (a folder), SEED, JOBS, SSH_CONFIG and SSH_PORTS (one sshd for each job).
"""
import collections
import concurrent.futures
import errno
import glob
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
import waiting

LIMIT = 30  # seconds on a quiet machine
VERDICTS = 'right told hang crash silent left'.split()

# What a kernel may answer, by call and kind. Left out is what no kernel does to this program: EIO on pipes,
# sockets and eventfds (libuv aborts on its own), short transfers of eventfds, datagrams and up to PIPE_BUF bytes
# of a pipe, EINTR of files and of calls that never wait, as wait4(WNOHANG), EAGAIN of a descriptor that blocks,
# EBADF and EFAULT, refusals of fcntl(F_GETFL, F_SETFL), of dup2() and of epoll_ctl(EPOLL_CTL_DEL). What fails
# in the loader, before main(), does not count.
ERRORS = {
    'openat': 'EMFILE ENFILE EACCES ENOSPC EINTR ENOENT',
    'open': 'EMFILE ENFILE EACCES ENOSPC',
    'read:file': 'EIO cut half',
    'read:pipe': 'EINTR cut half',
    'read:socket': 'EINTR ECONNRESET cut half',
    'read:device': 'EINTR EIO',
    'recvfrom:socket': 'EINTR ECONNRESET cut half',
    'recvmsg:socket': 'EINTR ENOMEM ENOBUFS',
    'pread64:file': 'EIO cut',
    'write:file': 'ENOSPC EIO EDQUOT cut half',
    'write:pipe': 'cut half',
    'write:socket': 'EINTR EPIPE ECONNRESET cut half',
    'writev:file': 'ENOSPC EIO cut',
    'writev:pipe': 'EINTR EPIPE cut half',
    'writev:socket': 'EINTR EPIPE cut half',
    'sendto:socket': 'EINTR EPIPE ECONNRESET ENOBUFS cut half',
    'sendmsg:socket': 'EINTR EPIPE ENOBUFS cut half',
    'clone': 'EAGAIN ENOMEM', 'clone3': 'EAGAIN ENOMEM ENOSYS', 'fork': 'EAGAIN ENOMEM', 'vfork': 'EAGAIN',
    'mmap:anon': 'ENOMEM', 'mmap:file': 'ENOMEM', 'brk': 'ENOMEM', 'mprotect': 'ENOMEM', 'mremap': 'ENOMEM',
    'pipe2': 'EMFILE ENFILE', 'socketpair': 'EMFILE ENFILE', 'epoll_create1': 'EMFILE ENOMEM',
    'eventfd2': 'EMFILE ENFILE', 'timerfd_create': 'EMFILE', 'inotify_init1': 'EMFILE', 'memfd_create': 'EMFILE',
    'pidfd_open': 'EMFILE ENOSYS', 'dup': 'EMFILE', 'dup3': 'EMFILE', 'fcntl:dup': 'EMFILE',
    'epoll_ctl:add': 'ENOMEM ENOSPC', 'epoll_wait:anon': 'EINTR',
    'poll': 'EINTR ENOMEM', 'ppoll': 'EINTR ENOMEM',
    'mkdir': 'EACCES EMLINK ENOSPC EROFS', 'mkdirat': 'EACCES ENOSPC', 'rmdir': 'EACCES EBUSY EIO',
    'rename': 'EACCES ENOSPC EIO', 'renameat': 'EACCES ENOSPC EIO', 'renameat2': 'EACCES ENOSPC EIO',
    'unlink': 'EACCES EIO', 'unlinkat': 'EACCES EIO', 'link': 'EMLINK EPERM', 'linkat': 'EMLINK EPERM',
    'symlink': 'EACCES ENOSPC', 'symlinkat': 'EACCES ENOSPC', 'readlink': 'EACCES EIO ENOENT',
    'readlinkat': 'EACCES EIO', 'access': 'EACCES EIO', 'faccessat': 'EACCES', 'faccessat2': 'EACCES',
    'newfstatat': 'EACCES EIO ENOMEM', 'statx': 'EACCES EIO', 'statfs': 'EACCES EIO', 'fstatfs:file': 'EIO',
    'getdents64:file': 'EIO', 'lseek:file': 'EINVAL', 'ftruncate:file': 'EIO EFBIG', 'fallocate:file': 'ENOSPC EOPNOTSUPP',
    'fsync:file': 'EIO ENOSPC', 'fdatasync:file': 'EIO', 'chmod': 'EPERM', 'fchmod:file': 'EPERM', 'fchmodat': 'EPERM',
    'flock:wait': 'EINTR ENOLCK', 'getcwd': 'ENOENT EACCES', 'chdir': 'EACCES ENOENT EIO',
    'socket': 'EMFILE ENFILE ENOBUFS EAFNOSUPPORT', 'bind:socket': 'EADDRINUSE EACCES ENOMEM', 'listen:socket': 'EADDRINUSE',
    'connect:socket': 'EINTR ECONNREFUSED EAGAIN ENETUNREACH', 'accept4:socket': 'EMFILE ENFILE ECONNABORTED EINTR ENOMEM',
    'setsockopt:socket': 'ENOPROTOOPT ENOMEM', 'getsockopt:socket': 'ENOBUFS', 'getsockname:socket': 'ENOBUFS',
    'getpeername:socket': 'ENOTCONN ENOBUFS',
    'waitid': 'EINTR', 'kill': 'EPERM ESRCH', 'setsid': 'EPERM', 'prctl': 'EINVAL EPERM', 'prlimit64': 'EPERM',
    'sched_getaffinity': 'EINVAL', 'sched_setaffinity': 'EINVAL EPERM', 'set_mempolicy': 'EPERM', 'getrandom': 'ENOSYS',
    'unshare': 'EPERM ENOSPC', 'mount': 'EPERM', 'execve': 'ENOEXEC EACCES ENOMEM E2BIG ETXTBSY',
    'timerfd_settime:anon': 'ECANCELED', 'inotify_add_watch:anon': 'ENOSPC',
}
ROLES = 'head head-child guard agent agent-child shell'.split()

RANK = '"$HELLO" >/dev/null || exit 8\necho "out $RANK"; echo "err $RANK" >&2\n'
RANK_TWICE = '[ "$HN_RESTART$RANK" != 01 ] || exit 3\n[ "$HN_RESTART" = 1 ] || exec sleep 60\n' + RANK
RANK_READS = '[ "$RANK" != 0 ] || [ "$(wc -c)" = 100000 ] || exit 9\n' + RANK
SCENARIOS = {
    'local': (['--local', '3', '--stdin', '0'], RANK_READS),
    'restart': (['--local', '3', '--max-restarts', '1'], RANK_TWICE),
    'ssh': (['-w', 'n1:3', '--push', 'rank.sh'], RANK),
}

Try = collections.namedtuple('Try', 'scenario role call n how')


def name_of(t):
    return '/'.join((t.scenario, t.role, t.call, str(t.n), t.how))


def number(how):
    """What inject takes: a number for the name of an error."""
    word, at, text = how.partition('@')
    return str(getattr(errno, word, word)) + at + text


class Run:
    """One launch in folders of its own."""

    def __init__(self, work, scenario, slot, how):
        self.scenario, self.slot = scenario, slot
        self.dir = work
        for name in 'work run shm cache state config home tmp san'.split():
            os.makedirs(os.path.join(work, name))
        options, rank = SCENARIOS[scenario]
        with open(self.path('work/rank.sh'), 'w') as f:
            f.write(rank)
        self.inject = [os.environ['INJECT'], '-o', self.path('report')] + how
        argv = [os.environ['HNLAUNCH'], '--label', 'none', '--log-dir', 'logs', '--grace', '1s',
                '--connect-timeout', '%ds' % waiting.scaled(4), '--start-timeout', '%ds' % waiting.scaled(8)] + options
        if '-w' in options:
            self.prepare_node()
            argv += ['--ssh-config', os.environ['SSH_CONFIG'], '-p', os.environ['SSH_PORTS'].split()[slot]]
        self.argv = own_mounts(self.path('shm')) + self.inject + argv + ['sh', 'rank.sh']

    def path(self, name):
        return os.path.join(self.dir, name)

    def env(self):
        mine = {k: v for k, v in os.environ.items() if k in ('PATH', 'LC_ALL', 'LANG', 'USER', 'LOGNAME', 'TEST_MARK', 'HELLO')}
        mine.update(HOME=self.path('home'), XDG_RUNTIME_DIR=self.path('run'), XDG_CACHE_HOME=self.path('cache'), HNLAUNCH_STAGE_DIR=self.path('cache'),
                    XDG_STATE_HOME=self.path('state'), XDG_CONFIG_HOME=self.path('config'), TMPDIR=self.path('tmp'),
                    TRY=self.dir, TERM='dumb',
                    ASAN_OPTIONS='detect_leaks=0:log_path=' + self.path('san/asan'),
                    UBSAN_OPTIONS='halt_on_error=1:log_path=' + self.path('san/ubsan'))
        return mine

    def prepare_node(self):
        """What the forced command of the slot's sshd runs."""
        quote = lambda s: "'" + s.replace("'", "'\\''") + "'"
        with open(os.path.join(os.environ['WORK'], 'node.%d' % self.slot), 'w') as f:
            for k, v in self.env().items():
                f.write('export %s=%s\n' % (k, quote(v)))
            f.write('cd %s\n' % quote(self.path('home')))
            f.write('exec ' + ' '.join(map(quote, own_mounts(self.path('shm')) + self.inject)) +
                    ' /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')

    def report(self):
        try:
            with open(self.path('report'), errors='replace') as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def all_gone(self):
        lines = self.report()
        return lines.count('begin') == lines.count('end') and self.head.poll() is not None

    def run(self, limit):
        with open(self.path('out'), 'w') as out, open(self.path('err'), 'w') as err:
            self.head = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=out, stderr=err,
                                         cwd=self.path('work'), env=self.env())
        threading.Thread(target=self.feed).start()
        begin = time.monotonic()
        while not self.all_gone():
            if time.monotonic() - begin > limit and time.monotonic() - begin > waiting.scaled(limit):
                break
            time.sleep(0.005)
        self.ended = self.all_gone()
        if not self.ended:
            self.end()
        self.head.wait()

    def feed(self):
        try:
            self.head.stdin.write(b'x' * 100000)
            self.head.stdin.close()
        except OSError:
            pass  # the head did not read all

    def processes(self):
        mark = b'TRY=' + self.dir.encode()
        for path in glob.glob('/proc/[0-9]*/environ'):
            try:
                with open(path, 'rb') as f:
                    if mark in f.read().split(b'\0'):
                        yield int(path.split('/')[2])
            except OSError:
                pass

    def end(self):
        """Ends what is left, and keeps what it was."""
        self.left = []
        for pid in self.processes():
            try:
                with open('/proc/%d/cmdline' % pid, 'rb') as f:
                    text = f.read().replace(b'\0', b' ').decode(errors='replace')[:100]
                with open('/proc/%d/wchan' % pid) as f:
                    text += ' in ' + f.read()
                self.left.append('%d: %s' % (pid, text))
            except OSError:
                pass
        while pids := list(self.processes()):
            for pid in pids:
                try:
                    os.kill(pid, 9)
                except OSError:
                    pass
            time.sleep(0.01)

    # --- judging

    def text(self, name):
        try:
            with open(self.path(name), errors='replace') as f:
                return f.read()
        except OSError:
            return None

    def judge(self):
        """(verdict, reason)"""
        exits = [line for line in self.report() if line.startswith('exit ')]
        reports = glob.glob(self.path('san/*'))
        if reports:
            return 'crash', self.text(reports[0])[:3000]
        if not self.ended:
            return ('left' if len(exits) else 'hang'), '\n'.join(self.left)
        code, err = self.head.returncode, self.text('err')
        if code in (132, 134, 135, 136, 139) or code < 0 or 'Assertion' in err or 'core dumped' in err:
            return 'crash', 'exit %d' % code
        if re.search(r'(agent|guard).*(SIGABRT|SIGSEGV|SIGILL|SIGBUS)', err) or self.agent_vanished(err):
            return 'crash', 'of the agent'
        left = self.files_left()
        told = re.findall(r'warning\[HN314\]: .* in ([^ :,]+)', err)
        if not all(any(path.startswith(folder) for folder in told) for path in left):
            return 'left', ' '.join(left)
        if code:
            return self.judge_failure(code, err)
        wrong = self.wrong()
        return ('silent', wrong) if wrong else ('right', '')

    def agent_vanished(self, err):
        """It ended, and neither said why, nor could not because its way to the head was the fault."""
        on_link = self.call in ('read:socket', 'write:socket', 'read:pipe', 'write:pipe')
        return self.role in ('agent', 'guard') and not on_link and 'connection lost (end of stream)' in err

    def judge_failure(self, code, err):
        summary = self.summary()
        lines = err.splitlines() or ['']
        if summary and summary.get('code') != code:
            return 'silent', 'exit %d, but the summary has %s' % (code, summary.get('code'))
        if 'nothing was started: interrupted' in lines[-1]:
            return 'silent', 'nobody interrupted it'
        if code in (126, 127) and lines[-1]:
            return 'told', lines[-1]  # the loader, before main()
        error = re.search(r'^error\[HN\d+\]: .*', err, re.M)
        if error and lines[-1] == 'hnlaunch: nothing was started  (exit %d)' % code:
            return 'told', error.group()
        if re.search(r'^hnlaunch.*\(exit %d\)$' % code, lines[-1]):
            return 'told', lines[-1]
        return 'silent', 'exit %d without a verdict' % code

    def log(self, name):
        """A file of the log folder: its link is right, or its lack is told."""
        folders = [f for f in glob.glob(self.path('work/logs/*')) if 'latest' not in f] if 'warning[HN907]' in self.text('err') else []
        return self.text(os.path.join(folders[0] if folders else self.path('work/logs/latest'), name))

    def summary(self):
        text = self.log('summary.json')
        try:
            return json.loads(text) if text else None
        except ValueError:
            return {'code': 'no JSON'}

    def wrong(self):
        """What is wrong with a launch that ended with 0; None = nothing."""
        if sorted(self.text('out').splitlines()) != ['out 0', 'out 1', 'out 2']:
            return 'standard output is wrong'
        err = self.text('err').splitlines()
        if sorted(line for line in err if line.startswith('err ')) != ['err 0', 'err 1', 'err 2']:
            return 'standard error is wrong'
        if self.stderr_failed():
            pass
        elif not err[-1].startswith('hnlaunch: finished: 3 ranks exited 0'):
            return 'the verdict is wrong'
        for rank in range(3):
            for stream in 'out', 'err':
                got = self.log('rank-%05d.%s' % (rank, stream))
                if got != '%s %d\n' % (stream, rank):
                    return 'rank-%05d.%s is wrong: %r' % (rank, stream, got)
        if (self.summary() or {}).get('code') != 0:
            return 'the summary is wrong'
        try:
            events = [json.loads(line)['ev'] for line in self.log('events.ndjson').splitlines()]
        except (AttributeError, ValueError, KeyError):
            return 'events.ndjson is wrong'
        if events[-1:] != ['run.end'] or events.count('rank.exited') < 3:
            return 'events.ndjson is not complete: ' + ' '.join(events)
        return None

    def stderr_failed(self):
        """The verdict itself could not be written; the exit code says it."""
        return any(line.startswith('hit ') and line.endswith(self.path('err')) for line in self.report())

    def files_left(self):
        left = []
        for folder in 'run', 'shm', 'tmp':
            left += glob.glob(self.path(folder + '/*')) + glob.glob(self.path(folder + '/.[!.]*'))
        left = [path for path in left if path != self.path('run/hnlaunch')]  # where ~/.cache will not do
        for top, _, files in [*os.walk(self.path('cache')), *os.walk(self.path('run/hnlaunch'))]:
            # A socket that a hnlaunch without memory or random bytes leaves is removed by the next ps.
            left += [os.path.join(top, f) for f in files if not re.fullmatch(r'agent-[0-9a-f]+|[a-z2-9]{5}\.sock', f)]
        for top, _, files in os.walk(self.path('work/logs')):
            left += [os.path.join(top, f) for f in files
                     if not re.fullmatch(r'rank-\d+\.(out|err)|(summary|run)\.json|events\.ndjson|trace|output|latest', f)]
        return left


def own_mounts(shm):
    """A /dev/shm of its own, where that is allowed."""
    if os.geteuid() != 0:
        return []
    return ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /dev/shm && exec "$@"', shm]


# --- the table ---------------------------------------------------------------------------------------


def thin(count, most):
    """Numbers from 1 to count, at most so many: the first, the last, and some between."""
    if count <= most:
        return range(1, count + 1)
    first, last = most // 3, 2
    step = (count - first - last) / (most - first - last)
    return sorted({*range(1, first + 1), *(first + 1 + int(i * step) for i in range(most - first - last)),
                   count - 1, count})


def possible(scenario):
    return '-w' not in SCENARIOS[scenario][0] or os.environ.get('SSH_PORTS')


def make_table(bench, most):
    table = []
    for scenario in SCENARIOS:
        if not possible(scenario):
            continue
        for _ in range(3):  # a machine that is very busy may be too slow for it
            run = bench.launch(scenario, ['count'], None, None, LIMIT)
            verdict, reason = run.judge()
            if verdict == 'right':
                break
        if verdict != 'right':
            sys.exit('%s without a fault: %s: %s\n%s' % (scenario, verdict, reason, run.text('err')))
        counts = collections.Counter()
        for line in run.report():
            word, *rest = line.split()
            if word == 'count' and rest[0] in ROLES:
                counts[rest[0], rest[1]] += int(rest[2])
        for (role, call), count in counts.items():
            for how in ERRORS.get(call, '').split():
                table += [Try(scenario, role, call, n, how) for n in thin(count, most)]
    return table


def sample(table, n, seed):
    """Kinds of tries are equally likely, however often their call comes."""
    kinds = collections.defaultdict(list)
    for t in table:
        kinds[t.scenario, t.role, t.call, t.how].append(t)
    dice = random.Random(seed)
    order = list(kinds.values())
    for kind in order:
        dice.shuffle(kind)
    dice.shuffle(order)
    picked = []
    while len(picked) < n and order:
        picked += [kind.pop() for kind in order][:n - len(picked)]
        order = [kind for kind in order if kind]
    return picked


class Bench:
    def __init__(self):
        self.jobs = int(os.environ.get('JOBS') or os.cpu_count())
        self.slots = queue.Queue()
        for slot in range(self.jobs):
            self.slots.put(slot)
        self.n, self.lock = 0, threading.Lock()

    def launch(self, scenario, how, role, call, limit):
        with self.lock:
            self.n += 1
            work = os.path.join(os.environ['WORK'], 'try.%d.%d' % (os.getpid(), self.n))
        slot = self.slots.get()
        try:
            run = Run(work, scenario, slot, how)
            run.role, run.call = role, call
            run.run(limit)
            return run
        finally:
            self.slots.put(slot)

    def attempt(self, t, limit=LIMIT):
        run = self.launch(t.scenario, [t.role, t.call, str(t.n), number(t.how)], t.role, t.call, limit)
        verdict, reason = run.judge()
        hits = [line for line in run.report() if line.startswith('hit ')]
        said = '%s\n%s\n%s' % (reason, ' '.join(hits), run.text('err')[-3000:])
        if os.environ.get('KEEP') != 'yes':
            shutil.rmtree(run.dir, ignore_errors=True)
        return t, verdict, said, bool(hits)

    def run_all(self, tries, tell):
        again = []
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for done in concurrent.futures.as_completed([pool.submit(self.attempt, t) for t in tries]):
                result = done.result()
                if result[1] in ('hang', 'left'):
                    again.append(result[0])
                    print('# %s: %s, to be repeated' % (name_of(result[0]), result[1]), flush=True)
                else:
                    tell(*result)
        for t in again:
            tell(*self.attempt(t, 2 * LIMIT))


class Teller:
    def __init__(self, wanted):
        self.wanted = wanted
        self.counts = collections.defaultdict(collections.Counter)

    def __call__(self, t, verdict, said, hit):
        good = verdict in ('right', 'told')
        if t in self.wanted:
            want, words = self.wanted[t]
            good = verdict == 'right' and not hit if want == 'unused' else hit and verdict == want and words in said
        self.counts[t.role, t.call.split(':')[0]][verdict if hit else 'not hit'] += 1
        print('%s %s: %s%s' % ('ok' if good else 'not ok', name_of(t), verdict, '' if hit else ', not hit'), flush=True)
        if not good or os.environ.get('VERBOSE'):
            print('\n'.join('# ' + line for line in said.splitlines()), flush=True)

    def table(self):
        print('# %-12s %-18s %5s' % ('role', 'call', 'tries') + ''.join('%7s' % v for v in VERDICTS))
        total = collections.Counter()
        for (role, call), c in sorted(self.counts.items()):
            total.update(c)
            hits = sum(c[v] for v in VERDICTS)
            print('# %-12s %-18s %5d' % (role, call, hits) + ''.join('%7d' % c[v] for v in VERDICTS))
        print('# %-12s %-18s %5d' % ('all', '', sum(total[v] for v in VERDICTS)) +
              ''.join('%7d' % total[v] for v in VERDICTS) + '   (%d not hit)' % total['not hit'])


def main(args):
    bench, wanted = Bench(), {}
    if args and args[0] in ('--all', '--sample'):
        table = make_table(bench, 20)
        seed = os.environ.get('SEED') or '1'
        tries = sample(table, len(table) if args[0] == '--all' else int(args[1]), seed)
        if len(args) > 1 and args[0] == '--all':
            tries = [t for t in tries if re.search(args[1], name_of(t))]
        print('# %d of %d tries, SEED=%s' % (len(tries), len(table), seed), flush=True)
    else:
        tries = []
        for arg in args[1:]:
            name, verdict, words = (arg + '  ').split(' ', 2)
            scenario, role, call, n, how = name.split('/', 4)
            if not possible(scenario):
                continue
            tries.append(Try(scenario, role, call, int(n), how))
            wanted[tries[-1]] = verdict, words.strip()
    teller = Teller(wanted)
    bench.run_all(tries, teller)
    if args[:1] == ['--all']:
        teller.table()


if __name__ == '__main__':
    main(sys.argv[1:])
