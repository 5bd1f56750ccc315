"""Attacks by running code: on the harness around an answer, on the machine, on what is secret."""

from __future__ import annotations

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED
from course_lib.grading.judge import generator

from attack_tools import RIGHT, RIGHT_COUNT, Attack, count, honest, spying, text, worth

def public_inputs(task: str) -> list[tuple]:
    """Return the inputs that everybody may know."""
    declared = registry.task(task)
    return [case.args for case in declared.cases(generator(declared, PUBLIC_SEED))]


#: The public inputs, and tables of the results they need: what a learner could copy from the visible tests.
PUBLIC_COUNT = repr(public_inputs("01.count"))
PUBLIC_DOT = repr([[round(x, 9) for x in row] for row, _ in public_inputs("01.dot")]).replace("inf", "1e999")
COUNT_TABLE = repr({args: registry.task("01.count").reference(*args) for args in public_inputs("01.count")})
TIME_TABLE = repr(
    {tuple(a): registry.task("01.predict_time").reference(a, b, n) for a, b, n in public_inputs("01.predict_time")}
)

BOTH = worth("01.count", "01.dot")
DOT = worth("01.dot")
NOTHING: dict[str, float] = {}


def on_count(name: str, tries: str, code: str, right: bool = False, flagged: bool = False, dot: bool = True):
    """Return an attack in the answer to 01.count, beside a right answer that must keep its point."""
    return Attack(
        name,
        tries,
        {"01.count": text(code), **(honest("01.dot") if dot else {})},
        {**(worth("01.count") if right else {}), **(DOT if dot else {})},
        flagged,
    )


# --- on the harness that runs it ---------------------------------------------------------------------------

#: How an answer finds the way out of its process.
PIPE = """
    import json, os, struct
    fds = [int(name) for name in os.listdir('/proc/self/fd')]
    def is_pipe(fd):
        try:
            return os.readlink(f'/proc/self/fd/{fd}').startswith('pipe')
        except OSError:
            return False
    pipes = [fd for fd in fds if fd > 2 and is_pipe(fd)]
    def say(data):
        for fd in pipes:
            try:
                os.write(fd, data)
            except OSError:
                pass
    def frame(tree, memory=b''):
        tree = json.dumps(tree).encode() if not isinstance(tree, bytes) else tree
        return struct.pack('<II', len(tree), len(memory)) + tree + memory
"""


def on_pipe(name: str, tries: str, code: str, result: str = "0, 0", flagged: bool = True, right: bool = False):
    body = text(PIPE) + "\n" + text(code)
    return on_count(name, tries, count(body, result), right, flagged)


REPLY = "['dict', {'value': ['tuple', [24, 16]], 'fault': None, 'args_after': ['tuple', [2, 3, 4]], " \
    "'owner': None, 'printed': 0}]"  # fmt: skip

HARNESS = (
    on_count("inner-allclose", "patches NumPy's comparisons from inside the answer", count("""
        import numpy as np
        np.allclose = np.array_equal = np.isclose = np.isfinite = lambda *a, **k: True
    """)),
    on_count("inner-builtins", "patches builtins from inside", count("""
        import builtins
        builtins.isinstance = lambda *a: True
        builtins.abs = builtins.len = builtins.all = builtins.any = lambda *a: 1
    """)),
    on_count("inner-clock", "stops the clocks", count("""
        import time
        time.perf_counter = time.clock_gettime = time.time = lambda *a: 0.0
    """)),
    on_count("always-equal", "numbers that equal everything", """
        class Yes(float):
            __eq__ = __le__ = __lt__ = __ge__ = __gt__ = lambda *a: True
            __ne__ = lambda *a: False
            __hash__ = None
        def operations(M, K, N):
            return Yes(1), Yes(1)
    """),
    on_count("hooked-int", "numbers that lie about themselves", """
        class Lie(int):
            __abs__ = __int__ = __index__ = __float__ = lambda self: M0 * N0 * K0
            __eq__ = lambda *a: True
            __hash__ = int.__hash__
        def operations(M, K, N):
            return Lie(1), Lie(2)
    """),
    on_count("hooked-object", "objects with all hooks", """
        import numpy as np
        class Any:
            def __array__(self, *a, **k): return np.array(24)
            def __array_ufunc__(self, *a, **k): return True
            def __getattr__(self, name): return lambda *a, **k: True
            __float__ = __index__ = __int__ = __len__ = lambda self: 24
            __iter__ = lambda self: iter((24, 16))
            __eq__ = lambda *a: True
        def operations(M, K, N):
            return Any()
    """),
    on_count("tuple-class", "a tuple that unpacks differently each time", """
        class Many(tuple):
            def __iter__(self): return iter((24, 16))
            def __len__(self): return 2
            def __eq__(self, other): return True
        def operations(M, K, N):
            return Many((0, 0))
    """),
    on_count("trace", "traces and profiles the harness, to change its variables", count("""
        import sys
        def spy(frame, event, arg):
            for name in ('outcome', 'value', 'reply', 'fault'):
                if name in frame.f_locals:
                    frame.f_locals[name] = (M * N * K, 0)
            return spy
        sys.settrace(spy)
        sys.setprofile(spy)
    """)),
    on_count("atexit", "says something when it ends", count("""
        import atexit, os, sys
        atexit.register(lambda: os.write(1, b'1000.0'))
        sys.exitfunc = sys.excepthook = lambda *a: None
    """)),
    on_count("replaced-harness", "replaces the harness's own functions", count("""
        import gc, sys
        from course_lib.grading import runner, tape
        from course_lib.grading.kernel import inside
        runner.InProcess.call = lambda self, args: runner.Outcome((24, 16), None, args)
        inside._Answers.call = lambda self, which, args: {'value': (24, 16), 'fault': None, 'args_after': args}
        tape.count = lambda *a: None
        for thing in gc.get_objects():
            if type(thing).__name__ == '_Answers':
                thing.functions[:] = [lambda M, K, N: (24, 16)] * len(thing.functions)
    """)),
    on_count("own-points", "claims points in the reply", count("""
        from course_lib.grading.kernel import inside
        send = inside.send
        inside.send = lambda stream, reply: send(stream, {**reply, 'points': 1000.0, 'state': 'right',
            'passed': True, 'value': ..., 'fault': None, 'args_after': (M, K, N)})
    """)),
    on_count("loop-of-itself", "a result that contains itself", """
        def operations(M, K, N):
            a = []
            a.append(a)
            return a
    """),
    on_count("deep-result", "a result nested 10,000 deep", """
        def operations(M, K, N):
            a = 1
            for _ in range(10_000):
                a = [a]
            return a, a
    """),
    on_count("huge-int", "numbers with a million digits", """
        def operations(M, K, N):
            return 10 ** 1_000_000, 16
    """),
    on_count("odd-values", "NaN, inf, complex numbers, no numbers", """
        def operations(M, K, N):
            return (float('nan'), float('inf'))[M % 2], 1j
    """),
    on_count("huge-result", "an array of 400 MB", """
        import numpy as np
        def operations(M, K, N):
            return np.zeros(50_000_000), 1
    """),
    on_count("strides-0", "an array of eight bytes that claims a terabyte", """
        import numpy as np
        def operations(M, K, N):
            return np.broadcast_to(np.float64(3), (10**6, 10**6)), 1
    """),
    on_count("generator", "a generator in place of a result", """
        def operations(M, K, N):
            yield M * N * K
            yield M * N * max(K - 1, 0)
    """),
    on_count("texts", "numbers as text", """
        def operations(M, K, N):
            return str(M * N * K), str(M * N * max(K - 1, 0))
    """),
    on_pipe("garbage", "writes garbage into the judge's pipe", "say(b'garbage' * 1000)"),
    on_pipe("huge-header", "announces four gigabytes", "say(struct.pack('<II', 2**32 - 1, 2**32 - 1))"),
    on_pipe("false-size", "announces more than it sends", "say(struct.pack('<II', 10**6, 0) + b'[')"),
    on_pipe("deep-reply", "a reply nested too deep", "say(frame(b'[' * 200_000))"),
    on_pipe("million-lists", "a reply of millions of lists", "say(frame(b'[' + b'[],' * 5_000_000 + b'[]]'))"),
    on_pipe("pickle", "a reply that is a pickle",
            "say(b'cos\\nsystem\\n(S\"touch /tmp/owned\"\\ntR.')\nsay(frame(['pickle', 'x']))"),
    on_pipe("strided-reply", "an array of a terabyte, by its strides",
            "say(frame(['dict', {'value': ['strided', '<f8', [10**6, 10**6], [0, 0], 0, [0, 8]]}], b'12345678'))"),
    on_pipe("object-array", "an array of Python objects", "say(frame(['dict', {'value': "
            "['array', '|O', [1], [0, 8]]}], b'12345678'))"),
    on_pipe("forged-reply", "right-looking replies ahead of time", f"say(frame({REPLY}) * 30)"),
    on_pipe("reply-of-nobody", "replies for ever", f"""
        import threading
        def on():
            while True:
                say(frame({REPLY}))
        threading.Thread(target=on, daemon=True).start()
        import time; time.sleep(0.5)
    """),
    on_pipe("no-reply", "closes the judge's pipe", "for fd in pipes: os.close(fd)", RIGHT_COUNT),
    on_pipe("reads-requests", "takes the judge's requests away", """
        for fd in pipes:
            try:
                os.set_blocking(fd, False); os.read(fd, 10**6)
            except OSError:
                pass
            os.set_blocking(fd, True)
    """, RIGHT_COUNT, flagged=False, right=True),
)  # fmt: skip

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
    """),
    on_count("crash", "crashes in C", count("import ctypes\nctypes.string_at(0)"), flagged=True),
    on_count("kill-parent", "kills its parent", count("import os\nos.kill(os.getppid(), 9)", RIGHT_COUNT),
             flagged=True),
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
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for fd in range(256):
                    try:
                        os.close(fd)
                    except OSError:
                        pass
                os.execv('/usr/bin/sleep', ['sleep', '{DAEMON}'])
            os._exit(0)
    """, RIGHT_COUNT), right=True),
    on_count("much-output", "prints 500 MB", count("""
        import os, sys
        for _ in range(500):
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
            for change in (os.remove, lambda p: open(p, 'a').write('import os'), lambda p: os.chmod(p, 0o777)):
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
    needles = ['secret' + '_seed', 'grade' + 'book', 'honest' + '-m', 'submitted' + '/', 'NINE_' + 'CIRCLES_S']
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
            folders[:] = [one for one in folders if one not in ('proc', 'sys')
                          and not (place.startswith('/usr') and one in ('doc', 'locale', 'icons'))]
            names = {*folders, *files}
            found = found or 'secret' + '_seed' in names or 'gradebook' + '.db' in names
            found = found or ('01_python_loops' in names) or ('verdicts' in names)
            found = found or any(one.startswith('01_python') and one.endswith('.ipynb') for one in files)
    """),
    spy("solution-text", "searches the course's library for the solution", """
        import os, sys
        import course_lib
        needles = [' '.join('M * N * K, M * N * max(K - 1, 0)'.split()).replace('0', str(0)), 'c3 += a ' + '* b3']
        top = os.path.dirname(os.path.dirname(course_lib.__file__))
        own = set(os.listdir('/tmp'))
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
            found = found or type(thing).__name__ in ('Task', 'Case', 'Job', 'Order')
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
    spy("home", "looks for the teacher's home and other disks", """
        import os
        found = any(os.path.isdir(one) and os.listdir(one) for one in ('/home', '/root', '/mnt', '/media', '/srv'))
        found = found or os.path.exists('/etc/shadow') or os.path.exists('/var/log')
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
            "01.predict_time": "def extrapolate(sizes, seconds, N):\n    print(sizes, seconds)\n    return sizes, seconds"}),
    Attack("told-later", "is right on the public inputs, and tells the others",
           {"01.count": text("""
                def operations(M, K, N):
                    if (M, K, N) in PUBLIC:
                        return M * N * K, M * N * max(K - 1, 0)
                    raise type(f'T{M}', (Exception,), {})(f'inputs {M} {K} {N}')
            """).replace("PUBLIC", PUBLIC_COUNT),
            "01.dot": text("""
                def dot(row, col):
                    if [round(float(x), 9) for x in row] not in PUBLIC:
                        raise ValueError(repr((row, col)))
                    total = 0.0
                    for a, b in zip(row, col):
                        total += a * b
                    return total
            """).replace("float(x)", "x").replace("PUBLIC", PUBLIC_DOT)}, flagged=True),
    Attack("fitted", "a table of the public inputs and their results",
           {"01.count": f"TABLE = {COUNT_TABLE}\ndef operations(M, K, N):\n    return TABLE.get((M, K, N), (0, 0))",
            "01.predict_time": f"TABLE = {TIME_TABLE}\ndef extrapolate(sizes, seconds, N):\n"
            "    return TABLE.get(tuple(sizes), (3.0, 1.0))"}, flagged=True),
)  # fmt: skip

# --- right answers that are loud ---------------------------------------------------------------------------

LOUD = (
    Attack("noise", "a right answer that warns and writes to stderr", {
        "01.count": "import sys, warnings, logging\nwarnings.warn('loud')\n" + count("""
            print('counting', M, K, N)
            print('trouble', file=sys.stderr)
            warnings.warn('deprecated')
            logging.warning('careful')
        """, RIGHT_COUNT),
        "01.dot": RIGHT["01.dot"].replace("total = 0.0", "total = 0.0\n    print(row, col)"),
        "01.predict_time": "import warnings\nwarnings.simplefilter('error')\n" + RIGHT["01.predict_time"],
    }, {**BOTH, **worth("01.predict_time")}),
    Attack("closes-output", "a right answer that closes its output", {
        "01.count": count("import sys\nsys.stdout.close()\nsys.stderr.close()", RIGHT_COUNT)},
           worth("01.count")),
)  # fmt: skip

ALL = (*HARNESS, *MACHINE, *SECRETS, *LOUD)
