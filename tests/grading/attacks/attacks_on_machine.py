"""Attacks by running code: on the machine, and on what is secret."""

from __future__ import annotations

from attack_tools import RIGHT_COUNT, Attack, count, on_count, spying, text

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED
from course_lib.grading.judge import generator


def public_inputs(task: str) -> list[tuple]:
    """Return the inputs that everybody may know."""
    declared = registry.task(task)
    return [case.args for case in declared.cases(generator(declared, PUBLIC_SEED))]


#: The public inputs, and tables of the results they need: what a learner could copy from the visible tests.
PUBLIC_COUNT = repr(public_inputs("01.count"))
PUBLIC_DOT = repr([[round(x, 9) for x in row] for row, _ in public_inputs("01.dot")]).replace("inf", "1e999")
COUNT_TABLE = repr({args: registry.task("01.count").reference(*args) for args in public_inputs("01.count")})
TIME_TABLE = repr(
    {
        tuple(a): registry.task("01.predict_time").reference(a, b, n)
        for a, b, n in public_inputs("01.predict_time")
    }
)

# --- on the machine ----------------------------------------------------------------------------------------

#: Marks what must not live on after the class is graded.
DAEMON = "86399"

MACHINE = (
    on_count("loop", "a loop without end that lets nothing stop it", """
        import signal
        def operations(M, K, N):
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass
    """),
    on_count("compiled-loop", "a compiled loop without end", """
        from numba import njit
        @njit
        def spin():
            n = 1
            while n:
                n += 2
            return n
        def operations(M, K, N):
            return spin(), 0
    """),
    on_count("loop-in-c", "a loop in C that hears no signal", "def operations(M, K, N):\n"
             "    return sum(range(10**12)), 0"),
    on_count("loop-at-load", "a loop before the function is there", """
        LIMIT = sum(range(10**12))
        def operations(M, K, N):
            return LIMIT, 0
    """),
    on_count("sleep", "sleeps for ever", "import time\ndef operations(M, K, N):\n    time.sleep(10**6)"),
    on_count("fork-bomb", "a fork bomb", """
        import os
        def operations(M, K, N):
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
    """),
    on_count("thread-bomb", "threads without end", """
        import threading, time
        def operations(M, K, N):
            while True:
                try:
                    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
                except RuntimeError:
                    return M * N * K, M * N * max(K - 1, 0)
    """, right=True),
    on_count("40-gigabytes", "allocates 40 GB", """
        import numpy as np
        def operations(M, K, N):
            return np.ones(5 * 10**9).sum(), 0
    """),
    on_count("much-memory", "takes memory until it is stopped", """
        def operations(M, K, N):
            kept = []
            while True:
                kept.append(bytearray(50_000_000))
    """),
    on_count("memory-by-files", "takes memory by files that live in it", count("""
        import os
        kept = []
        for place in ('/tmp', '/dev/shm', '/run', '/var/tmp'):
            try:
                for n in range(10_000):
                    with open(f'{place}/{n}', 'wb') as file:
                        file.write(b'x' * 4_000_000)
            except OSError:
                pass
        for place in ('/tmp', '/dev/shm'):
            for name in os.listdir(place):
                if name.isdigit():
                    os.remove(f'{place}/{name}')
    """, RIGHT_COUNT), right=True),
    on_count("a-large-file", "a file beyond the limit", count("""
        with open('/tmp/large', 'wb') as file:
            for _ in range(1000):
                file.write(b'x' * 10**6)
    """, RIGHT_COUNT)),
    on_count("exit", "ends the process", count("import os\nos._exit(0)", RIGHT_COUNT), flagged=True),
    on_count("sys-exit", "leaves by sys.exit", count("import sys\nsys.exit('12 of 12 points')")),
    on_count("system-exit", "raises SystemExit(0)", count("raise SystemExit(0)")),
    on_count("interrupt", "raises KeyboardInterrupt", count("raise KeyboardInterrupt"), flagged=True),
    on_count("base-exception", "raises what few catch", """
        class Quiet(BaseException):
            def __str__(self): raise Quiet
            __repr__ = __str__
        def operations(M, K, N):
            raise Quiet
    """, flagged=True),
    on_count("crash", "crashes in C", count("import ctypes\nctypes.string_at(0)"), flagged=True),
    on_count("kill-parent", "kills its parent: there is none", count("import os\nos.kill(os.getppid(), 9)",
             RIGHT_COUNT), right=True),
    on_count("kill-all", "kills all it can", count("""
        import os
        for pid in (-1, *range(2, 5000)):
            try:
                os.kill(pid, 9)
            except OSError:
                pass
    """, RIGHT_COUNT), right=True),
    on_count("daemon", "leaves a process behind", count(f"""
        import os
        if not os.path.exists('/tmp/started') and open('/tmp/started', 'w') and os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for fd in range(256):
                    try:
                        os.close(fd)
                    except OSError:
                        pass
                os.execv('/usr/bin/sleep', ['sleep', '{DAEMON}'])
            os._exit(0)
    """, RIGHT_COUNT)),
    on_count("much-output", "prints 200 MB", count("""
        import os, sys
        for _ in range(100):
            print('x' * 10**6)
            print('x' * 10**6, file=sys.stderr)
            sys.__stdout__.write('x' * 10**5)
            for fd in (0, 1, 2):
                os.write(fd, b'y' * 10**5)
    """, RIGHT_COUNT), right=True),
    on_count("more-limits", "raises its limits", count("""
        import resource
        for name in dir(resource):
            if name.startswith('RLIMIT'):
                try:
                    resource.setrlimit(getattr(resource, name), (-1, -1))
                except (OSError, ValueError):
                    pass
        import numpy as np
        return np.ones(5 * 10**9).sum(), 0
    """)),
    on_count("writes-python", "changes the Python that runs other students", count("""
        import os, sys, numpy
        for place in (numpy.__file__, sys.executable, os.__file__, '/usr/bin/true', '/etc/passwd'):
            for change in (os.remove, lambda p: open(p, 'a').write('#'), lambda p: os.chmod(p, 0o777)):
                try:
                    change(place)
                    raise SystemExit('it can be changed')
                except OSError:
                    pass
    """, RIGHT_COUNT), right=True),
)  # fmt: skip

# --- on what is secret -------------------------------------------------------------------------------------


def spy(name: str, tries: str, code: str) -> Attack:
    """Return an attack that is right only if it finds what it looks for."""
    return on_count(f"spy-{name}", tries, spying(code))


#: Names and texts that must not be visible. Glued together here, so that an answer does not find itself.
NEEDLES = """
    needles = ['secret' + '_seed', 'grade' + 'book', 'honest' + '-m', 'handed' + '_in', 'NINE_' + 'CIRCLES_S']
"""
SECRETS = (
    spy("environ", "reads the grader's environment", text(NEEDLES) + "\n" + text("""
        import glob
        for path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):
            found = found or any(one in open(path, 'rb').read().decode('latin1') for one in needles)
    """)),
    spy("mounts", "reads where things are mounted", text(NEEDLES) + "\n" + text("""
        import glob
        for path in glob.glob('/proc/*/mount*') + glob.glob('/proc/*/maps') + glob.glob('/proc/net/unix'):
            found = found or any(one in open(path).read() for one in needles)
    """)),
    spy("processes", "looks for other processes", """
        import os
        others = [one for one in os.listdir('/proc') if one.isdigit() and int(one) != os.getpid()]
        found = bool(others)
    """),
    spy("cwd", "goes through other processes' folders", """
        import glob, os
        for path in glob.glob('/proc/*/cwd') + glob.glob('/proc/*/root') + glob.glob('/proc/*/fd/*'):
            try:
                names = os.listdir(path)
            except OSError:
                continue
            found = found or any(one in names for one in ('solutions', 'exercises', 'secret' + '_seed'))
    """),
    spy("tree", "walks everything it can see, for notebooks, grades, solutions and the seed", """
        import os
        for place, folders, files in os.walk('/'):
            dull = ('proc', 'share', 'include', 'site-packages', 'lib-dynload')
            folders[:] = [one for one in folders if one not in dull]
            names = {*folders, *files}
            found = found or 'secret' + '_seed' in names or 'gradebook' + '.db' in names
            found = found or '01_python_loops' in names or 'verdicts' in names or 'handed' + '_in' in names
            found = found or any(one.startswith('01_python') and one.endswith('.ipynb') for one in files)
    """),
    spy("solution-text", "searches the course's library for the solution", """
        import os, sys
        import course_lib
        needles = ['M * N * K, M * N ' + '* max(K - 1, 0)', 'c3 += a ' + '* b3']
        top = os.path.dirname(os.path.dirname(course_lib.__file__))
        for place, folders, files in os.walk(top):
            folders[:] = [one for one in folders if one not in ('.venv', 'site-packages')]
            for name in files:
                try:
                    with open(os.path.join(place, name), 'rb') as file:
                        words = file.read().decode('latin1')
                except OSError:
                    continue
                found = found or any(one in words for one in needles)
    """),
    spy("tasks", "imports the declarations of the tasks", """
        from course_lib.grading import registry
        found = callable(registry.task('01.count').reference)
    """),
    spy("references", "looks for a task or a case in the harness's memory", """
        import gc, sys
        for thing in gc.get_objects():
            found = found or type(thing).__name__ in ('Task', 'Case', 'SubmissionJob', 'GradingOrder')
        frame = sys._getframe()
        while frame:
            found = found or any(one in frame.f_locals for one in ('seed', 'task', 'reference', 'want'))
            frame = frame.f_back
    """),
    spy("network", "asks somebody outside", """
        import socket
        for family, address in ((socket.AF_INET, ('127.0.0.1', 22)), (socket.AF_INET, ('1.1.1.1', 53))):
            try:
                socket.create_connection(address, 0.3)
                found = True
            except OSError:
                pass
        found = found or len(socket.if_nameindex()) > 1
    """),
    spy("home", "looks into homes, at passwords and logs", """
        import glob, os
        homes = [*glob.glob('/home/*'), '/root', '/home']
        names = {name for home in homes if os.path.isdir(home) for name in os.listdir(home)}
        found = bool(names & {'.ssh', '.bashrc', '.profile', '.bash_history', '.config', '.gitconfig'})
        places = ('/etc/shadow', '/etc/passwd', '/var/log', '/run', '/boot', '/sys')
        found = found or any(map(os.path.exists, places))
    """),
    spy("user", "becomes root again", """
        import os, ctypes
        for become in (os.setuid, os.setgid):
            try:
                become(0)
                found = found or os.getuid() == 0
            except OSError:
                pass
        libc = ctypes.CDLL(None)
        found = found or libc.mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0
        found = found or libc.ptrace(16, os.getppid(), 0, 0) == 0
    """),
    Attack("told-inputs", "puts the secret inputs into its error message, to read them in the feedback",
           {"01.count": count("raise ValueError(f'{M} {K} {N}')"),
            "01.dot": "def dot(row, col):\n    raise ValueError(repr((row, col)))",
            "01.predict_time": "def extrapolate(sizes, seconds, N):\n    print(sizes, seconds)\n"
            "    return sizes, seconds"}),
    Attack("told-later", "is right on the public inputs, and tells the others",
           {"01.count": text("""
                def operations(M, K, N):
                    if (M, K, N) in PUBLIC:
                        return M * N * K, M * N * max(K - 1, 0)
                    raise type(f'T{M}', (Exception,), {})(f'inputs {M} {K} {N}')
            """).replace("PUBLIC", PUBLIC_COUNT),
            "01.dot": text("""
                def dot(row, col):
                    if [round(x, 9) for x in row] not in PUBLIC:
                        raise ValueError(repr((row, col)))
                    total = 0.0
                    for a, b in zip(row, col):
                        total += a * b
                    return total
            """).replace("PUBLIC", PUBLIC_DOT)}, flagged=True),
    Attack("fitted", "a table of the public inputs and their results",
           {"01.count": f"TABLE = {COUNT_TABLE}\ndef operations(M, K, N):\n"
            "    return TABLE.get((M, K, N), (0, 0))",
            "01.predict_time": f"TABLE = {TIME_TABLE}\ndef extrapolate(sizes, seconds, N):\n"
            "    return TABLE.get(tuple(sizes), (3.0, 1.0))"}, flagged=True),
)  # fmt: skip

ALL = (*MACHINE, *SECRETS)
