# The study in one command: make reproduce. Plain `make` prints help.
PROFILE ?= offline
# Papers to run, by the names of their folders; none: all.
PAPERS ?=
JOBS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help data plan reproduce study runs report verify notebook test test-machines lint bench lock clean

# An active conda environment is used with `make PYTHON=python ...`; otherwise .venv is built from the lock.
ifdef PYTHON
ENVIRONMENT :=
else
PYTHON := .venv/bin/python
ENVIRONMENT := .venv/ready
endif

help:  ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo "  make 03_test-mrpc runs one notebook and what it needs   JOBS=$(JOBS)   PROFILE=$(PROFILE)   (profiles: $(PROFILES))"

# The Python that .venv is made of: BASE=python3.12 names another one. Checked before the first download.
BASE ?= python3
.venv/ready: requirements.lock pyproject.toml
	@$(BASE) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 14) else "error: Python 3.11 to \
	3.14 is needed, and $(BASE) is %d.%d: install one and run make BASE=python3.12, say" % v)'
	$(BASE) -m venv --clear .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# --- files -----------------------------------------------------------------------------------------------

RESULTS_DIR ?= results
RESULTS := $(RESULTS_DIR)/$(PROFILE)
CACHE := $(RESULTS)/cache
PROFILES := $(patsubst profiles/%.yaml,%,$(wildcard profiles/*.yaml))
# A run is done when its name stands in D. It runs again when something on the right of its rules below is newer: its
# script, its parameters, a run whose results it reads, or a file of the rooms of analysis/ that make its numbers.
D := $(CACHE)/done
# Lists of tasks of the profile, such as 06_michel_ablation.tasks, and cache/parameters/<notebook>.yaml.
TASKS := $(CACHE)/tasks.mk
DEVELOPMENT := help data verify notebook test test-machines lint bench lock clean
ifneq ($(filter-out $(DEVELOPMENT),$(MAKECMDGOALS)),)
include $(TASKS)
endif

$(TASKS): $(ENVIRONMENT) profiles/$(PROFILE).yaml analysis/study/profiles.py $(wildcard notebooks/*.py)
	@$(PYTHON) -m analysis.study.profiles --profile $(PROFILE)

$(CACHE)/parameters/%.yaml: ; @$(PYTHON) -m analysis.study.profiles --profile $(PROFILE)

profiles/$(PROFILE).yaml:
	@echo "error: unknown profile '$(PROFILE)': choose from $(PROFILES)" >&2; exit 1

# Outside of git, `make verify` compares with the tables that a release came with: they are kept before the first run.
RELEASED := $(if $(wildcard .git),,$(patsubst %/tables,%/released,$(wildcard results/$(PROFILE)/tables)))
%/released:
	@mkdir $@ && cp -R $(wildcard $*/tables $*/provenance) $@

FILES := $(shell find analysis -type f ! -name '*.pyc' ! -name '*.md')
room = $(foreach name,$1,$(filter analysis/$(name)/%,$(FILES)))
TEXTS  := $(call room,texts) $(wildcard data/bundled/*)
MODELS := $(TEXTS) $(call room,encoders)
SCORES := $(MODELS) $(call room,scores)
DRAWN  := $(call room,statistics figures) $(addprefix analysis/scores/,banks.py roles.py)
STORE  := analysis/study/results.py

# --- the study: which run needs which, and which rooms ----------------------------------------------------

# Tasks whose heads get roles, and those for which an encoder is fine-tuned.
ROLES := $(sort $(foreach name,03_test_all 03_robustness 04_compare 04_compare_seeds 04_verdicts 10_synthesis,$($(name).tasks)) $(11_matching.pair_tasks))
TUNED := $(sort $(ROLES) $(foreach name,06_michel_ablation 06_michel_pruning 07_kovaleva_patterns 07_kovaleva_disable 08_pascual,$($(name).tasks)) \
  $(10_synthesis.model_tasks) $(07_kovaleva_disable.start_tasks) $(11_matching.pair_tasks) $(11_matching.single_tasks))

finetune   := $(TUNED:%=$D/00_finetune-%)
pretrained := $(ROLES:%=$D/01_extract-%-pretrained)
finetuned  := $(ROLES:%=$D/01_extract-%-finetuned)

$(finetune): $(MODELS) $(call room,figures)
$(pretrained) $(finetuned): $(SCORES) $(addprefix analysis/statistics/,controls.py roles.py)
$(finetuned): $D/01_extract-%-finetuned: $D/00_finetune-%

# The Heads Hypothesis: scores, tests and labels of each task, then all tasks together, and what fine-tuning changes.
score := $(ROLES:%=$D/02_score-%)
tests := $(ROLES:%=$D/03_test-%)
pande2021 := $(score) $(tests) $D/03_test_all $D/03_robustness $D/04_compare $D/04_compare_seeds $D/04_verdicts

$(pande2021): $(DRAWN) $(call room,papers/pande2021)
$(score): $D/02_score-%: $D/01_extract-%-pretrained $D/01_extract-%-finetuned
$(tests): $D/03_test-%: $D/01_extract-%-pretrained $D/01_extract-%-finetuned
$D/03_test_all: $(tests)
$D/03_robustness $D/04_compare: $(pretrained) $(finetuned) $(tests)
$D/04_compare_seeds: $(pretrained) $(finetuned)
$D/04_verdicts: $(pretrained) $(finetuned) $(tests) $D/04_compare_seeds

# What Does BERT Look At?
clark2019 := $D/05_clark_surface $D/05_clark_syntax $D/05_clark_verdicts

$(clark2019): $(DRAWN) $(call room,papers/clark2019)
$D/05_clark_surface: $(SCORES)
$D/05_clark_syntax: $D/05_clark_surface
$D/05_clark_verdicts: $D/05_clark_surface $D/05_clark_syntax

# Are Sixteen Heads Really Better than One?
michel2019 := $D/06_michel_ablation $D/06_michel_pruning

$(michel2019): $(DRAWN) $(call room,papers/michel2019) $(sort $(06_michel_ablation.tasks:%=$D/00_finetune-%) $(06_michel_pruning.tasks:%=$D/00_finetune-%))
$D/06_michel_pruning: $D/06_michel_ablation

# Revealing the Dark Secrets of BERT
kovaleva2019 := $D/07_kovaleva_patterns $D/07_kovaleva_disable $D/07_kovaleva_verdicts

$(kovaleva2019): $(DRAWN) $(SCORES) $(call room,papers/kovaleva2019)
$D/07_kovaleva_disable: $(sort $(foreach list,tasks start_tasks,$(07_kovaleva_disable.$(list):%=$D/00_finetune-%)))
$D/07_kovaleva_patterns: $(07_kovaleva_patterns.tasks:%=$D/00_finetune-%)
$D/07_kovaleva_verdicts: $D/07_kovaleva_disable $D/07_kovaleva_patterns

# Telling BERT's Full Story
attribution := $(08_pascual.pretrained_tasks:%=$D/08_attribution-%-pretrained) $(08_pascual.tasks:%=$D/08_attribution-%-finetuned)
pascual2021 := $(attribution) $D/08_pascual

$(pascual2021): $(DRAWN) $(SCORES) $(call room,papers/pascual2021)
$(filter %-finetuned,$(attribution)): $D/08_attribution-%-finetuned: $D/00_finetune-%
$D/08_pascual: $(attribution)

# Probing Neural Network Comprehension of Natural Language Arguments
niven2019 := $D/09_niven_cues $D/09_niven_models

$(niven2019): $(TEXTS) $(DRAWN) $(call room,papers/niven2019)
$D/09_niven_models: $(SCORES) $D/09_niven_cues

# Across the papers
synthesis := $D/10_synthesis $D/11_matching

$D/10_synthesis: $(MODELS) $(DRAWN) $(call room,synthesis) $(10_synthesis.model_tasks:%=$D/00_finetune-%) $(pretrained) $(finetuned) $(tests) \
  $D/04_compare_seeds $(filter-out %_verdicts,$(clark2019)) $(michel2019) $(filter-out %_verdicts,$(kovaleva2019)) $D/08_pascual

# It reads the ablations of 06 from the cache, so it waits for them rather than making them a second time.
$D/11_matching: $D/06_michel_ablation $(SCORES) $(DRAWN) $(call room,synthesis) $(11_matching.pair_tasks:%=$D/03_test-%) \
  $(foreach list,pair_tasks single_tasks,$(11_matching.$(list):%=$D/00_finetune-%))

# What comes last shows the runs that were asked for: the page to browse heads, and the claims of all papers.
STUDIES := pande2021 clark2019 michel2019 kovaleva2019 pascual2021 niven2019 synthesis
$(foreach name,$(filter-out $(STUDIES),$(PAPERS)),$(error unknown paper '$(name)': choose from $(STUDIES)))
GOALS := $(foreach name,$(or $(PAPERS),$(STUDIES)),$($(name)))
RUNS := $(sort $(finetune) $(pretrained) $(finetuned) $(foreach name,$(STUDIES),$($(name))) $D/98_explorer $D/99_summary)

$D/98_explorer: $(GOALS) $(SCORES) $(DRAWN) $(call room,explorer)
$D/99_summary: $(GOALS) $D/98_explorer $(DRAWN) analysis/study/front_page.py

# Every run is made in the same way.
NOTEBOOKS := $(basename $(notdir $(wildcard notebooks/[0-9]*.py)))
$(foreach name,$(NOTEBOOKS),$(eval $(filter $D/$(name) $D/$(name)-%,$(RUNS)): notebooks/$(name).py $(CACHE)/parameters/$(name).yaml))
# Notebooks share the cores: with one thread each, two of them are done sooner than one after the other with two.
CORES := $(shell getconf _NPROCESSORS_ONLN)
$D/%: export OMP_NUM_THREADS := $(shell echo $$(( $(CORES) > $(JOBS) ? $(CORES) / $(JOBS) : 1 )))
$D/%: export STUDY_RUNS := $(notdir $(RUNS))
$(RUNS): $(STORE) | $(ENVIRONMENT) $(RELEASED)
	@$(PYTHON) -m analysis.run $(@F) --profile $(PROFILE) --keep

# `make 03_test-mrpc`, or `make 03_test` for all tasks.
$(foreach name,$(NOTEBOOKS),$(eval $(name): $(filter $D/$(name) $D/$(name)-%,$(RUNS))))
$(foreach name,$(filter-out $(NOTEBOOKS),$(notdir $(RUNS))),$(eval $(name): $D/$(name)))
.PHONY: $(NOTEBOOKS) $(notdir $(RUNS))

study: $D/index
$D/index: $D/99_summary analysis/study/index.py
	@$(PYTHON) -m analysis.study.index --profile $(PROFILE) && touch $@

STOPPED = echo "stopped in or after run $$(wc -c < $$STUDY_COUNT | tr -d ' ') of $$STUDY_TOTAL; the same command goes on from here"
reproduce: $(ENVIRONMENT)  ## run the whole study of PROFILE, or PAPERS="clark2019 ..." alone, JOBS notebooks at a time
	@trap : INT; export STUDY_COUNT=$$(mktemp) STUDY_TOTAL=$$($(MAKE) -n study | grep -c -- ' --keep$$'); \
	$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs=$(JOBS)) study || { $(STOPPED); rm $$STUDY_COUNT; exit 1; }; \
	rm $$STUDY_COUNT
	@sed -n 's/^- \([a-z0-9]*: .*\)/\1/p' $(RESULTS)/README.md
	@echo "open $(RESULTS)/notebooks/99_summary.ipynb; index of all: $(RESULTS)/README.md"
	@echo "make report PROFILE=$(PROFILE) makes web pages of the notebooks"

data: $(ENVIRONMENT)  ## download the data that profiles glue-minilm and paper read (into data/cache, or DATA_DIR)
	@$(PYTHON) -m analysis.study.downloads $(if $(SOURCES),--sources $(SOURCES))

plan: $(ENVIRONMENT)  ## every run of PROFILE, its data, and about how long it takes here
	@$(PYTHON) -m analysis.study.plan --profile $(PROFILE) $(notdir $(RUNS))

runs:  ## list the runs of PROFILE
	@printf '%s\n' $(notdir $(RUNS))

SITE := $(CACHE)/report
report: reproduce  ## a static site of PROFILE: its notebooks, figures and head explorer as web pages
	@rm -rf $(SITE) && mkdir -p $(SITE) && cp -R $(RESULTS)/figures $(RESULTS)/notebooks $(wildcard $(RESULTS)/explorer.html) $(SITE)
	@$(PYTHON) -m jupytext --quiet --from markdown --to ipynb --output $(SITE)/index.ipynb $(RESULTS)/README.md
	@$(PYTHON) -m nbconvert --log-level ERROR --to html --HTMLExporter.require_js_url= \
	  --TemplateExporter.extra_template_basedirs=tools --template report $(SITE)/*.ipynb $(SITE)/notebooks/*.ipynb
	@perl -pi -e 's/\.ipynb"/.html"/g; s/README\.md"/index.html"/g' $(SITE)/*.html $(SITE)/notebooks/*.html
	@rm $(SITE)/*.ipynb $(SITE)/notebooks/*.ipynb
	@echo "open $(SITE)/index.html"

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
	$(OTHER_ARITHMETIC) STUDY_PROFILE=smoke OPENBLAS_CORETYPE=Haswell $(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile \
	  tests/study/test_study.py tests/statistics tests/synthesis
	$(OTHER_ARITHMETIC) OPENBLAS_CORETYPE=Zen $(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile \
	  tests/statistics tests/synthesis

bench: $(ENVIRONMENT)  ## what scoring, testing, the companion analyses and the head explorer cost, and large corpora
	@set -e; for name in extraction significance companions interventions explorer scale; do $(PYTHON) benchmarks/$$name.py; done

lint: $(ENVIRONMENT)  ## check style and formatting
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

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
