# The study in one command: make reproduce. Plain `make` prints help.
PROFILE ?= offline
COMPANIONS := 05_clark_surface 05_clark_syntax
REQUESTED := $(MAKECMDGOALS)
JOBS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help reproduce report verify pack notebook test lint bench lock clean

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

reproduce: $(STAMPS)/99_summary  ## run the whole study of PROFILE, JOBS notebooks at a time

# What a profile's notebooks depend on is worked out from the notebooks themselves.
ifneq ($(filter reproduce report,$(REQUESTED)),)
MAKEFLAGS += --jobs=$(JOBS)
include $(CACHE)/rules.mk
endif

$(CACHE)/rules.mk: $(ENVIRONMENT) profiles/$(PROFILE).yaml $(shell find analysis notebooks -name "*.py")
	@$(PYTHON) -m analysis.study.rules --profile $(PROFILE)

profiles/$(PROFILE).yaml:
	@echo "error: unknown profile '$(PROFILE)': choose from $(patsubst profiles/%.yaml,%,$(wildcard profiles/*.yaml))" >&2; exit 1

define stamp
@mkdir -p $(@D) && touch $@
endef

define TASK_RULES
$(STAMPS)/00_finetune-$(1): $$(DEPENDS_00_finetune)
	$$(RUN) 00_finetune --set task=$(1)
	$$(stamp)
$(STAMPS)/01_extract-$(1)-pretrained: $$(DEPENDS_01_extract)
	$$(RUN) 01_extract --set task=$(1) --set state=pretrained
	$$(stamp)
$(STAMPS)/01_extract-$(1)-finetuned: $$(DEPENDS_01_extract) $(STAMPS)/00_finetune-$(1)
	$$(RUN) 01_extract --set task=$(1) --set state=finetuned
	$$(stamp)
$(STAMPS)/02_score-$(1): $$(DEPENDS_02_score) $(STAMPS)/01_extract-$(1)-pretrained $(STAMPS)/01_extract-$(1)-finetuned
	$$(RUN) 02_score --set task=$(1)
	$$(stamp)
$(STAMPS)/03_test-$(1): $$(DEPENDS_03_test) $(STAMPS)/01_extract-$(1)-pretrained $(STAMPS)/01_extract-$(1)-finetuned
	$$(RUN) 03_test --set task=$(1)
	$$(stamp)
endef
$(foreach task,$(TASKS),$(eval $(call TASK_RULES,$(task))))

SCORES := $(foreach state,pretrained finetuned,$(TASKS:%=$(STAMPS)/01_extract-%-$(state)))

$(STAMPS)/03_test_all: $(DEPENDS_03_test_all) $(TASKS:%=$(STAMPS)/03_test-%)
	$(RUN) 03_test_all
	$(stamp)
$(STAMPS)/03_test_calibration: $(DEPENDS_03_test_calibration)
	$(RUN) 03_test_calibration
	$(stamp)
$(STAMPS)/03_test_sensitivity: $(DEPENDS_03_test_sensitivity) $(SCORES)
	$(RUN) 03_test_sensitivity
	$(stamp)
$(STAMPS)/04_compare: $(DEPENDS_04_compare) $(TASKS:%=$(STAMPS)/03_test-%)
	$(RUN) 04_compare
	$(stamp)
$(STAMPS)/04_compare_seeds: $(DEPENDS_04_compare_seeds) $(SCORES)
	$(RUN) 04_compare_seeds
	$(stamp)
STUDY := 03_test_all 03_test_calibration 03_test_sensitivity 04_compare 04_compare_seeds $(TASKS:%=02_score-%) \
  $(COMPANIONS)
$(STAMPS)/99_summary: $(DEPENDS_99_summary) $(STUDY:%=$(STAMPS)/%)
	$(RUN) 99_summary
	$(stamp)

# Notebooks of the companion papers: they need no other, and the summary alone needs them.
$(STAMPS)/05_clark_surface: $(DEPENDS_05_clark_surface)
	$(RUN) 05_clark_surface
	$(stamp)
$(STAMPS)/05_clark_syntax: $(DEPENDS_05_clark_syntax)
	$(RUN) 05_clark_syntax
	$(stamp)

report: reproduce  ## the executed notebooks of PROFILE as web pages
	$(PYTHON) -m nbconvert --to html --output-dir $(CACHE)/report $(RESULTS_DIR)/$(PROFILE)/notebooks/*.ipynb
	@echo "open $(CACHE)/report/"

verify: $(ENVIRONMENT)  ## is what this machine made for PROFILE what was committed?
	@$(PYTHON) -m analysis.study.verification --profile $(PROFILE)

# --- development -----------------------------------------------------------------------------------------

notebook: $(ENVIRONMENT)  ## JupyterLab; the scripts in notebooks/ open as notebooks
	JUPYTER_CONFIG_PATH=$(CURDIR)/notebooks/.jupyter $(PYTHON) -m jupyterlab --notebook-dir . \
	  --LabApp.default_url=/lab/tree/notebooks

test: $(ENVIRONMENT)  ## all tests (DATA_DIR and PARSER add those on real data)
	$(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile

bench: $(ENVIRONMENT)  ## what scoring, testing and the companion analyses cost, as ratios, and large corpora
	$(PYTHON) benchmarks/extraction.py
	$(PYTHON) benchmarks/significance.py
	$(PYTHON) benchmarks/companions.py
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
