"""Attacks by running code: on the harness around an answer."""

from __future__ import annotations

from attack_tools import RIGHT, RIGHT_COUNT, Attack, count, on_count, text, worth

BOTH = worth("01.count", "01.dot")
DOT = worth("01.dot")


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


def on_pipe(
    name: str, tries: str, code: str, result: str = "0, 0", flagged: bool = True, right: bool = False
):
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
    """), flagged=True),
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
    """), flagged=True),
    on_count("atexit", "says something when it ends", count("""
        import atexit, os, sys
        atexit.register(lambda: os.write(1, b'1000.0'))
        sys.exitfunc = sys.excepthook = lambda *a: None
    """)),
    on_count("replaced-harness", "replaces the harness's own functions", count("""
        import gc, sys
        from course_lib.grading import runner, tape
        from course_lib.grading.sandbox import inside
        runner.InProcess.call = lambda self, args: runner.Outcome((24, 16), None, args)
        reply = {'value': (24, 16), 'fault': None, 'args_after': (M, K, N)}
        inside._Answers.call = lambda self, which, args: reply
        tape.count = lambda *a: None
        for thing in gc.get_objects():
            if type(thing).__name__ == '_Answers':
                thing.functions[:] = [lambda M, K, N: (24, 16)] * len(thing.functions)
    """)),
    on_count("own-points", "claims points in the reply", count("""
        from course_lib.grading.sandbox import inside
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
    on_pipe("false-size", "announces more than it sends",
            "say(struct.pack('<II', 10**6, 0) + b'[')", flagged=False),
    on_pipe("deep-reply", "a reply nested too deep", "say(frame(b'[' * 200_000))"),
    on_pipe("million-lists", "a reply of millions of lists", 
            "say(frame(b'[' + b'[],' * 5_000_000 + b'[]]'))"),
    on_pipe("pickle", "a reply that is a pickle",
            "say(b'cos\\nsystem\\n(S\"touch /tmp/owned\"\\ntR.')\nsay(frame(['pickle', 'x']))"),
    on_pipe("strided-reply", "an array of a terabyte, by its strides",
            "array = ['strided', '<f8', [10**6, 10**6], [0, 0], 0, [0, 8]]\n"
            "say(frame(['dict', {'value': array}], b'12345678'))"),
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

ALL = (*HARNESS, *LOUD)
