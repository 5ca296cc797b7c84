SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
PROFILE ?= demo
DATA ?= bulletin
VENV ?= .venv
MUTANTS ?= 300
EXTRAS ?= models,smollm2,nb,lexical,test,docs
PY := $(VENV)/bin/python
# three notebooks at a time, since one often waits for its kernel; one where they would share a GPU
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(if $(wildcard /dev/nvidia0),1,3)
endif
JOBS = $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),1)
AGAIN = $(if $(findstring B,$(firstword -$(MAKEFLAGS))),--again)
COMPILE := $(VENV)/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --no-annotate --no-header --generate-hashes
PIP := $(PY) -m pip install -q --disable-pip-version-check
RUN := $(PROFILE)$(if $(ITEMS),-$(ITEMS))
RUNS := runs/$(RUN)
export OMP_NUM_THREADS ?= 1
export MPLBACKEND = agg
export PYTHONHASHSEED = 0
# where bytecode is not kept, every interpreter compiles torch and transformers anew
unexport PYTHONDONTWRITEBYTECODE
# uv does not read pip's settings: hand it the folder of wheels that pip was told about, if any
FIND_LINKS = $(or $(PIP_FIND_LINKS),$(shell python3 -m pip config get global.find-links 2>/dev/null))
MODELS_bulletin := tiny-t5 tiny-bart tiny-unieval tiny-nli tiny-llama tiny-encoder
SIMULATED := coverage guarantee power dose level labels
MODELS_aeslc := aeslc-bart aeslc-t5

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1|\2/' | column -ts '|'
	@echo '  PROFILE=demo (default) or another section of settings.ini; ITEMS=50 takes 50 texts of each data set; TORCH_BACKEND=cpu or auto chooses the torch build'

# a notebook that fails stops no other; the report then marks the gap, and make fails
reproduce: $(VENV)/.ready runs/.library ## Rebuild every table, figure, ledger and the report of PROFILE
	@python3 scripts/alone.py $(RUNS)/.lock $(PY) scripts/reproduce.py $(RUN) $(JOBS) $(AGAIN)
	@echo "$(RUNS)/report/index.html is up to date"

test: $(VENV)/.ready ## Run the tests (six minutes); pages that ran green and are as they were are passed over
	$(PY) -m pytest -q -n 2 --dist worksteal --part short tests

test-all: $(VENV)/.ready ## Run what `make test` leaves out or shortens (half an hour)
	$(PY) -m pytest -q -n 2 --dist worksteal --part rest tests

profiles: $(VENV)/.ready ## Run every profile end to end on tiny models of the real classes (minutes)
	$(PY) -m pytest -q -n 2 --dist worksteal tests/project/test_profiles.py

zoo: $(VENV)/.ready ## Try every architecture of transformers that writes text, in small (two minutes)
	$(PY) -m pytest -q -m own_target tests/project/test_zoo.py

alone: $(VENV)/.ready ## Run every experiment by itself, in a copy without runs, mirror and network (a quarter of an hour)
	$(PY) -m pytest -q -n 2 --dist worksteal -m own_target tests/project/test_alone.py tests/project/test_make.py

faults: $(VENV)/.ready ## Try every known fault through the command line, and count how it ended
	UETRUST_FAULTS=data/faults.csv $(PY) -m pytest -q -n 2 --dist worksteal tests/project/test_faults.py

mutants: $(VENV)/.mutants ## Change one operator or number of the package at a time and see a test fail: a sample of MUTANTS (two hours); MODULES='core.store ...' for some
	$(PY) scripts/mutants.py --most $(MUTANTS) $(MODULES)

$(VENV)/.mutants: $(VENV)/.ready
	$(VENV)/bin/uv pip install -q -p $(PY) $(if $(FIND_LINKS),-f $(FIND_LINKS)) -c pins/constraints.txt -e '.[mutants]'
	touch $@

check: $(VENV)/.ready ## What CI runs: export in sync, notebooks clean and executed, links and headings, format, lint
	$(PY) scripts/nbs.py check
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

setup: $(VENV)/.ready hooks ## Make the environment (implied by the others), and have git store notebooks clean

# git keeps its settings outside the files, so a clone has no filter yet; pictures get the size of the stored ones
# git reads the files of a new clone once more, here before it has the filter: through that it takes minutes
hooks: | $(VENV)/.ready
	if git rev-parse --git-dir > /dev/null 2>&1; then \
	git update-index -q --refresh || true; \
	git config filter.notebook.clean '$(PY) scripts/nbs.py clean'; \
	fi
	mkdir -p $(VENV)/etc/ipython
	cp scripts/ipython_kernel_config.json $(VENV)/etc/ipython/

nbs: $(VENV)/.ready ## Export, execute, clean and stamp all notebooks in place
	$(PY) scripts/nbs.py run

models: $(MODELS_$(DATA):%=train--%) ## Train the tiny models that are not there yet (hours on 2 cores), then look at what they do; DATA=aeslc for e-mail summarizers
	@$(if $(filter bulletin,$(DATA)),$(PY) -c 'from uetrust.dev.training.behaviour import behaviour_table; print(behaviour_table("data/models").to_string())')

train--tiny-nli train--tiny-encoder: train--tiny-bart
train--tiny-unieval: train--tiny-t5
train--%: $(VENV)/.ready FORCE
	@$(PY) -c 'from uetrust.dev.training.train import train_command; train_command()' $*

smollm2: $(VENV)/.ready ## Fetch SmolLM2-135M-Instruct (93 MB) into the cache, as `uetrust models get smollm2` does
	$(VENV)/bin/uetrust models get smollm2

smollm2-people: smollm2 ## Let SmolLM2 read and judge what people judged, and store its scores (an hour and a half; go on with the same command)
	for i in 0 1; do $(PY) -c "from uetrust.papers.people.stand_in import STAND_IN_SETS, read_set; [read_set(name, worker=($$i, 2)) for name in STAND_IN_SETS]" & done; wait
	$(PY) -c 'from uetrust.papers.people.stand_in import store_reader_scores; print(*store_reader_scores())'

world: $(VENV)/.ready ## Make the large run anew and store its scores (hours; go on with the same command)
	$(PY) scripts/earlier_models.py runs/world/models
	$(PY) -c 'from uetrust.papers.bulletins.world import store_world; print(*store_world())'

smollm2-scores: $(VENV)/.ready ## Make the run of a real language model anew and store its scores (`uetrust models get smollm2` first)
	$(PY) -c 'from uetrust.papers.bulletins import language_model as run; print(*run.store_language_model()); run.store_temperatures()'

stored: ## Compute anew what data/stored holds (the demo with all of it live, a quarter of an hour)
	rm -rf runs/stored data/stored runs/demo/banks
	$(MAKE) reproduce PROFILE=demo AGAIN=--again
	cp -r runs/stored data/stored
	$(PY) -c 'from uetrust.papers.bulletins.inputs import store_banks; store_banks("demo")'

cards: ## Keep what the demo says for the methods' cards and the README
	$(MAKE) reproduce PROFILE=demo
	cp runs/demo/tables/methods_measured.csv data/demo_methods.csv
	cp runs/demo/tables/people_regret.csv data/people_regret.csv
	cp runs/demo/tables/people_overview.csv data/people_overview.csv
	$(PY) -c 'from uetrust.report.site.gallery import store_people_prr; store_people_prr()'
	$(PY) -m uetrust.dev.bench costs
	$(VENV)/bin/uetrust canaries --write
	$(PY) scripts/headline.py

docs: $(VENV)/.ready ## Build the site offline into docs/_build/html: the report of a run, lessons, modules and experiments
	$(PY) scripts/build_docs.py

browser: docs ## Open every page of the site in Chromium, at two widths and in two schemes (apt-get install chromium)
	$(PY) -m pytest -q -n 2 --dist worksteal -m browser tests/project/test_browser.py tests/project/test_lab.py

screenshots: $(VENV)/.ready ## Take the pictures of the site that the documentation shows (after reproduce and docs)
	$(PY) scripts/screenshots.py

slides: $(VENV)/.ready ## Write slides of all lessons, one HTML file each that needs no network, into runs/slides
	$(VENV)/bin/uetrust slides

course: $(VENV)/.ready ## Write one zip to teach with: lessons, slides, exams and data for students, keys apart; SEED=N chooses the exams
	$(PY) scripts/course.py $(SEED)

# with the backend of the other targets a notebook shows no figure
lab: $(VENV)/.ready hooks ## Open JupyterLab on trusted notebooks
	$(VENV)/bin/jupyter trust $$(find nbs -name '*.ipynb' -not -path '*/.*')
	env -u MPLBACKEND $(VENV)/bin/jupyter lab nbs

bench: $(VENV)/.ready $(if $(filter-out $(SIMULATED),$(or $(PART),all)),runs/.bench/.ready) ## Compare our time and memory with the published procedure, with LM-Polygraph and with the packages of metrics; PART=coverage, guarantee, power, dose, level or labels simulates anew
	$(PY) -m uetrust.dev.bench $(PART)

# torch and its libraries have builds of one version for each kind of card, so their hashes are left out
release: $(VENV)/.ready ## Build and check sdists and wheels of the last commit in dist, with SHA256SUMS and sbom.json; uploads nothing
	@$(PY) scripts/release.py

lock: $(VENV)/.ready ## Resolve the versions in pins anew, with hashes, from pyproject.toml and pins/torch.pin
	$(COMPILE) --all-extras -c pins/torch.pin pyproject.toml -o pins/constraints.txt
	awk '/^[^ ]/ {bare = /^(torch|triton|nvidia-|cuda-)/} bare {sub(/ \\$$/, "")} !(bare && /--hash/)' pins/constraints.txt > $(VENV)/constraints.txt
	cp $(VENV)/constraints.txt pins/constraints.txt
	printf 'uv>=0.9,<1\nsetuptools>=77\nhatchling>=1.27\n' | $(COMPILE) -c pins/constraints.txt - -o pins/tools.pin
	printf 'openai>=3,<4\nlm-eval[api]>=0.4.13,<0.5\ntransformers>=5.20,<6\ninspect-ai>=0.3.285,<0.4\n' | $(COMPILE) pyproject.toml - -o pins/clients.pin

clean: ## Remove what runs and builds have written, but not the environment
	rm -rf runs docs/_build dist

# A hash that does not match ends it. Only where uv has no build, pip takes its place, with the same hashes:
# first all that has one, then torch and its libraries
$(VENV)/.ready: pyproject.toml pins/constraints.txt pins/tools.pin
	test -x $(PY) || python3 -m venv $(VENV)
	said=$$($(PIP) --require-hashes -r pins/tools.pin 2>&1) || \
	{ echo "$$said" >&2; grep -q 'No matching distribution found for uv' <<< "$$said"; }
	if test -x $(VENV)/bin/uv; then \
	$(VENV)/bin/uv pip install -q -p $(PY) $(if $(FIND_LINKS),-f $(FIND_LINKS)) $(if $(TORCH_BACKEND),--torch-backend=$(TORCH_BACKEND)) -b pins/tools.pin -c pins/constraints.txt -e '.[$(EXTRAS)]'; \
	else \
	awk '/^[^ ]/ {hashed = / \\$$/} hashed' pins/constraints.txt > $(VENV)/hashed.txt; \
	awk '/^[^ ]/ {ours = !/^uv=/} ours' pins/tools.pin > $(VENV)/builder.txt; \
	awk '/^[^ ]/ && !/ \\$$/' pins/constraints.txt > $(VENV)/bare.txt; \
	$(PIP) --require-hashes --no-deps -r $(VENV)/builder.txt; \
	$(PIP) --require-hashes --no-deps --no-build-isolation -r $(VENV)/hashed.txt; \
	$(PIP) --no-build-isolation -c $(VENV)/bare.txt -e '.[$(EXTRAS)]'; \
	fi
	touch $@

# the peers have an environment of their own, with the versions of ours; uqlm asks for older ones, and what is timed
# of it needs none of them
runs/.bench/.ready: scripts/bench_requirements.txt pins/constraints.txt | $(VENV)/.ready
	$(VENV)/bin/uv venv -q --clear -p $(PY) runs/.bench
	$(VENV)/bin/uv pip install -q -p runs/.bench/bin/python $(if $(FIND_LINKS),-f $(FIND_LINKS)) $(if $(TORCH_BACKEND),--torch-backend=$(TORCH_BACKEND)) -c pins/constraints.txt -r scripts/bench_requirements.txt
	$(VENV)/bin/uv pip install -q --no-deps --target runs/.uqlm $(if $(FIND_LINKS),-f $(FIND_LINKS)) uqlm==0.6.7
	touch $@

# clients of `uetrust serve` that are not ours; tests/generation/test_serve_clients.py makes it
runs/.clients/.ready: pins/clients.pin pins/tools.pin | $(VENV)/.ready
	$(VENV)/bin/uv venv -q --clear -p $(PY) runs/.clients
	$(VENV)/bin/uv pip install -q -p runs/.clients/bin/python $(if $(FIND_LINKS),-f $(FIND_LINKS)) --require-hashes -b pins/tools.pin -r pins/clients.pin
	touch $@

# nbdev-export rewrites every module, so notebooks depend on the content of the library, not on file times
runs/.library: FORCE
	@python3 scripts/stamp.py $@ settings.ini $$(find uetrust -type f -not -name '*.pyc') $$(find data/published data/models data/judges -type f)

FORCE:
.PHONY: help smollm2 smollm2-people reproduce test test-all profiles zoo alone faults mutants check setup hooks nbs models stored cards docs browser screenshots slides course world smollm2-scores lab bench release lock clean FORCE
