"""The processor's counters through `perf stat`, with a stand-in that counts as it is told."""

import pytest

from course_lib.measure import perf_counters

#: Notes 1000 of each event and 250 a turn of the program's loop, those of cycles on two kinds of cores.
STAND_IN = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
out=$2
for turns; do :; done
turns=$(printf %s "$turns" | sed -n 's/.*range(\\([0-9]*\\)).*/\\1/p')
n=$((1000 + 250 * ${turns:-0}))
echo "# started on some day" > "$out"
for event in cpu_core/cycles/ cpu_atom/cycles/ instructions:u L1-dcache-loads L1-dcache-load-misses; do
    echo "$n,,$event,5,100.00,," >> "$out"
done
"""


@pytest.fixture
def perf(tmp_path, monkeypatch):
    """Put a stand-in for perf on the PATH, alone; return what replaces its text."""
    program = tmp_path / "perf"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(perf_counters, "PARANOID", tmp_path / "paranoid")

    def write(text):
        program.write_text(text)
        program.chmod(0o755)

    write(STAND_IN)
    return write


def test_the_difference_of_two_programs_is_a_call(perf):
    table = perf_counters.count("pass", {"one": "1 + 1", "two": "2 + 2"})
    assert table.columns[1:] == perf_counters.EVENTS
    assert [row[0] for row in table.rows] == ["one", "two"]
    assert table.rows[0][1:] == ("500", "250", "250", "250")


def test_what_cannot_be_counted_is_one_sentence(perf, monkeypatch, tmp_path):
    perf(STAND_IN.replace('echo "$n,', 'echo "<not supported>,'))
    assert "does not show its counters (cycles, instructions" in perf_counters.count("", {"one": "1"})
    perf("#!/bin/sh\nexit 255")
    (tmp_path / "paranoid").write_text("4\n")
    assert "kernel.perf_event_paranoid is 4" in perf_counters.count("", {"one": "1"})
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert "no program `perf`" in perf_counters.count("", {"one": "1"})


def test_a_program_that_fails_is_named(perf):
    perf(f'{STAND_IN}case "$*" in *range*) echo "NameError: nobody" >&2; exit 1;; esac')
    with pytest.raises(RuntimeError, match="NameError: nobody"):
        perf_counters.count("", {"one": "nobody"})
