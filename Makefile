# The study in one command: make reproduce. Plain `make` prints help.
PROFILE ?= offline
# Papers to run, by the names of their folders; none: all.
PAPERS ?=
REQUESTED := $(MAKECMDGOALS)
JOBS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help reproduce study report verify pack notebook test test-machines lint bench lock clean

# An active conda environment is used with `make PYTHON=python ...`; otherwise .venv is built from the lock.
ifdef PYTHON
ENVIRONMENT :=
else
PYTHON := .venv/bin/python
ENVIRONMENT := .venv/ready
endif

RESULTS_DIR ?= results
CACHE := $(RESULTS_DIR)/$(PROFILE)/cache
STAMPS := $(CACHE)/stamps
# Notebooks share the cores: with one thread each, two of them are done sooner than one after the other with two.
CORES := $(shell getconf _NPROCESSORS_ONLN)
THREADS := $(shell echo $$(( $(CORES) > $(JOBS) ? $(CORES) / $(JOBS) : 1 )))
RUN = OMP_NUM_THREADS=$(THREADS) $(PYTHON) -m analysis.run --profile $(PROFILE)

help:  ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo "  JOBS=$(JOBS)   PROFILE=$(PROFILE)   (profiles: $(patsubst profiles/%.yaml,%,$(wildcard profiles/*.yaml)))"

# The Python that .venv is made of: BASE=python3.12 names another one. Checked before the first download.
BASE ?= python3
.venv/ready: requirements.lock pyproject.toml
	@$(BASE) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 14) else "error: Python 3.11 to \
	3.14 is needed, and $(BASE) is %d.%d: install one and run make BASE=python3.12, say" % v)'
	$(BASE) -m venv --clear .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# --- the study -------------------------------------------------------------------------------------------

reproduce: $(ENVIRONMENT)  ## run the whole study of PROFILE, or PAPERS="clark2019 ..." alone, JOBS notebooks at a time
	+@$(PYTHON) -m analysis.study.reproduction --profile $(PROFILE) --jobs $(JOBS) $(MAKE) --no-print-directory study

# Which notebooks run, after which others, and what files they depend on: worked out from the notebooks themselves.
SPACE := $(subst ,, )
RULES := $(CACHE)/rules/$(or $(subst $(SPACE),+,$(sort $(PAPERS))),all).mk
ifneq ($(filter study,$(REQUESTED)),)
include $(RULES)
endif

$(RULES): $(ENVIRONMENT) profiles/$(PROFILE).yaml $(shell find analysis notebooks -name "*.py")
	@$(PYTHON) -m analysis.study.rules --profile $(PROFILE) $(PAPERS)

profiles/$(PROFILE).yaml:
	@echo "error: unknown profile '$(PROFILE)': choose from $(patsubst profiles/%.yaml,%,$(wildcard profiles/*.yaml))" >&2; exit 1

define stamp
@mkdir -p $(@D) && touch $@
endef

study: $(GOALS)

report: reproduce  ## a static site of PROFILE: its notebooks, figures and head explorer as web pages
	$(PYTHON) -m analysis.study.report --profile $(PROFILE)

verify: $(ENVIRONMENT)  ## is what this machine made for PROFILE what was committed?
	@$(PYTHON) -m analysis.study.verification --profile $(PROFILE)

# --- development -----------------------------------------------------------------------------------------

notebook: $(ENVIRONMENT)  ## JupyterLab; the scripts in notebooks/ open as notebooks
	JUPYTER_CONFIG_PATH=$(CURDIR)/notebooks/.jupyter $(PYTHON) -m jupyterlab --notebook-dir . \
	  --LabApp.default_url=/lab/tree/notebooks

test: $(ENVIRONMENT)  ## all tests (DATA_DIR and PARSER add those on real data)
	$(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile

# Other processors, as far as one can be asked to act like them: no wide vector instructions in PyTorch, oneDNN and MKL,
# and the kernels of another processor in OpenBLAS. No result may hang on the last bits.
OTHER_ARITHMETIC := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2
test-machines: $(ENVIRONMENT)  ## the smoke study and the statistics tests under the arithmetic of other processors
	$(OTHER_ARITHMETIC) OPENBLAS_CORETYPE=Haswell $(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile \
	  tests/study/test_study.py tests/statistics tests/synthesis
	$(OTHER_ARITHMETIC) OPENBLAS_CORETYPE=Zen $(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile \
	  tests/statistics tests/synthesis

bench: $(ENVIRONMENT)  ## what scoring, testing, the companion analyses and the head explorer cost, and large corpora
	$(PYTHON) benchmarks/extraction.py
	$(PYTHON) benchmarks/significance.py
	$(PYTHON) benchmarks/companions.py
	$(PYTHON) benchmarks/interventions.py
	$(PYTHON) benchmarks/explorer.py
	$(PYTHON) benchmarks/scale.py

lint: $(ENVIRONMENT)  ## check style and formatting
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

pack: $(ENVIRONMENT)  ## pack the tables of PROFILE for `make verify` in a downloaded archive
	@$(PYTHON) -m analysis.study.verification --profile $(PROFILE) --pack

# Soupsieve 3 needs Python 3.11.5, and Debian 12 has 3.11.2.
lock:  ## write requirements.lock anew and check it on every system and Python
	rm -rf build/lock && $(BASE) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --upgrade pip
	build/lock/bin/python -m pip install --quiet '.[test]' 'setuptools>=77' 'soupsieve<3' packaging
	build/lock/bin/python tools/lock.py write
	build/lock/bin/python tools/lock.py check
	rm -rf build/lock

clean:  ## delete the caches of PROFILE (models, scores, parses); tables and figures stay
	rm -rf $(CACHE)
