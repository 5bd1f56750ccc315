# Nine Circles of Matmul. `make lab` opens the course, `make test` tests it; `make` alone lists the targets.
# Every target first sees to it that .venv is there and up to date (course_lib/bootstrap.py): a tenth of a second
# when it is, a few minutes when it is not.

LAB_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=
SUBMISSIONS ?=
GRADE_ARGS ?=

# Windows' make (with the shell of Git for Windows) finds the environment's programs in another folder.
BIN := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
IN_VENV = PATH="$$PWD/.venv/$(BIN):$$PATH" VIRTUAL_ENV="$$PWD/.venv"

# The user's own modules must not leak into the course.
unexport PYTHONPATH
unexport PYTHONHOME
# The course starts many processes, and each would compile the library and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

# PYTHON=… on the command line is an order, in the shell's environment only the first to be tried.
ASKED_FOR = $(if $(filter command%,$(origin PYTHON)),--asked-for)
CANDIDATES = $(strip $(if $(PYTHON),"$(PYTHON)") $(if $(ASKED_FOR),,python3 python3.13 python3.12 python3.11 python))

# Read by Pythons of any age.
FITS = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
UNFIT = import sys; print("Set-up stopped: this is Python %d.%d.%d (%s), but the course needs Python 3.11 to 3.13; \
install one (python.org, or the packages of your system) and try again, or name it: \
make lab PYTHON=/path/to/python3.12." % (tuple(sys.version_info[:3]) + (sys.executable,)))

# On Linux without an NVIDIA GPU PyTorch comes from here, for PyPI's build brings gigabytes of CUDA; empty: never.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
export TORCH_INDEX

.PHONY: help lab test proof bench format exercises grade mutants venv
.NOTPARALLEL:

help:
	@echo "make lab         open the course in JupyterLab          (LAB_ARGS=\"--no-browser --port=8901\")"
	@echo "make test        run the tests                          (TEST_ARGS=\"-k ladder\")"
	@echo "make bench       measure the ladder on this machine     (BENCH_ARGS=\"--sizes 256 512\")"
	@echo "make proof       run the long tests as well"
	@echo "make format      bring code and notebooks into form"
	@echo "make exercises   generate exercises/ from solutions/"
	@echo "make grade       grade a class                          (SUBMISSIONS=download.zip, GRADE_ARGS=\"--workers 4\")"
	@echo "make mutants     which faults do the tasks catch?"
	@echo "make venv        only make .venv                        (PYTHON=/path/to/python3.12)"

lab: venv
	@$(IN_VENV) python -m course_lib lab $(LAB_ARGS)

# Workers get whole files, long ones first: what a file sets up once stays set up once (tests/conftest.py). They
# share the cores, so threads that wait must sleep: one that spins keeps the cores from those it waits for.
PARALLEL = -n auto --dist loadfile --no-loadscope-reorder
# What measures time goes last, with the machine to itself; what a busy moment spoilt is measured again, twice at
# most: what is really too slow is so three times. A choice of tests may leave one of the two passes with none (5).
MEASURED = --reruns 2 --reruns-delay 2 --only-rerun AssertionError
NONE_CHOSEN = $(if $(strip $(TEST_ARGS)),|| [ $$? -eq 5 ])
test: venv
	OMP_WAIT_POLICY=passive NINE_CIRCLES_PASS=1 $(IN_VENV) python -m pytest -m "not gpu and not slow and not timing" $(PARALLEL) $(TEST_ARGS) $(NONE_CHOSEN)
	NINE_CIRCLES_PASS=2 $(IN_VENV) python -m pytest -m "timing and not gpu and not slow" $(MEASURED) $(TEST_ARGS) $(NONE_CHOSEN)

proof: venv
	$(IN_VENV) python -m pytest -m "slow and not gpu and not timing" $(TEST_ARGS) $(NONE_CHOSEN)
	$(IN_VENV) python -m pytest -m "slow and timing and not gpu" $(MEASURED) $(TEST_ARGS) $(NONE_CHOSEN)

bench: venv
	@$(IN_VENV) python -m course_lib bench $(BENCH_ARGS)

format: venv
	$(IN_VENV) ruff format .
	$(IN_VENV) ruff check --fix .
	$(IN_VENV) python -m course_lib format
	$(IN_VENV) python -m course_lib readme

exercises: venv
	$(IN_VENV) python -m course_lib exercises

grade: venv
	@$(IN_VENV) python -m course_lib grade $(if $(SUBMISSIONS),"$(SUBMISSIONS)") $(GRADE_ARGS)

mutants: venv
	@$(IN_VENV) python -m tests.tools.mutation

# Takes the first Python that fits. When none is, the first one that runs at all says so in a sentence.
venv:
	@for python in $(CANDIDATES); do \
	  if "$$python" -c '$(FITS)' 2>/dev/null; then exec "$$python" course_lib/bootstrap.py $(ASKED_FOR); fi; \
	done; \
	for python in $(CANDIDATES); do "$$python" -c '$(UNFIT)' 2>/dev/null >&3 && exit 1; done 3>&2; \
	echo "Set-up stopped: no Python was found (tried: "$(CANDIDATES)"), and the course needs Python 3.11 to 3.13;" \
	  "install one (python.org, or your system's packages) and try again." >&2; \
	exit 1
