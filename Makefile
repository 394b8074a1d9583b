# Everything runs in .venv, which the first target that needs it makes: `make demo` and `make test` work on a fresh clone.
# The stamps make a second run quick; they are renewed when the declared packages change.

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# The build backend comes from the constraints too, hence no isolated (and unpinned) one. The variable spares the pip of
# older Pythons a warning about pyspark, which comes as source; newer ones have no such option and ignore it.
INSTALL := PIP_USE_PEP517=1 $(PIP) install --constraint constraints.txt --no-build-isolation --editable
# Where this is set, each of the many processes that tests start would compile all modules again: half a second each.
unexport PYTHONDONTWRITEBYTECODE
# Tests run in this many processes. One of them runs all tests of the shared Spark.
JOBS ?= 2
PYTEST = $(BIN)/pytest --quiet -n $(JOBS) --dist loadgroup --no-loadscope-reorder --durations 15
# The Pythons to try for .venv, the first suitable one is taken; `make PYTHON=...` names it.
PYTHONS := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast test-uncompiled test-long test-kafka test-stores setup lint format clean
.PHONY: bench-loading bench-engine bench-detection bench-spark bench-exits bench-first-use
.PHONY: experiments report bench-headline bench-broker bench-history bench-service bench-gpu wheel release docs screenshots

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: .venv/core.stamp  ## Set up what the library needs and run the main job
	@$(BIN)/tamis demo

# What comes before the suite runs beside each other: the type checker has one thread only, and waits for nobody.
test: .venv/dev.stamp  ## Set up everything and run all checks and tests
	@$(MAKE) --no-print-directory --jobs 4 lint test-uncompiled .cache/numba .cache/java
	$(PYTEST)

test-uncompiled: .venv/dev.stamp
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m kernels

# Only where nothing is compiled yet: two processes of tests would wait for each other. The indexes of papers have tests of
# their own each, which compile them.
.cache/numba: .venv/dev.stamp
	@test -d $@ || NUMBA_CACHE_DIR=$@ $(BIN)/tamis warmup --quiet --processes 1

# Both processes of tests begin with Spark, and one would wait until the other has made this.
.cache/java: .venv/dev.stamp
	@test -d $@ || $(BIN)/python -m tests.java_options $@

# Nothing that starts Spark or other processes: a minute once kernels are compiled.
test-fast: .venv/dev.stamp  ## Check style, the language, the encoding and the engine
	$(BIN)/ruff check --quiet .
	$(PYTEST) -m 'not spark' tests/kernels tests/language tests/encoding tests/engine tests/storage

# Before a release: within an hour on two cores.
test-long: .venv/dev.stamp  ## Run the long forms of tests: new random cases, empty caches
	$(PYTEST) --long -m long
	$(PYTEST) --soak -m 'not spark' tests/kernels tests/language tests/encoding tests/engine tests/matcher tests/broker \
	  tests/differential tests/papers tests/service

# Fetches a broker and Spark's connector by Maven, hence apart from the other tests. The connector has to be of Spark's own
# version, and Maven has not always that of the newest: SPARK=4.0.0 takes another Spark than that in .venv.
test-kafka: .venv/dev.stamp $(if $(SPARK),.cache/spark-$(SPARK)/stamp)  ## Run the example with Kafka against a real broker
	TAMIS_KAFKA=$(CURDIR)/.cache/kafka PYTHONPATH=$(if $(SPARK),$(CURDIR)/.cache/spark-$(SPARK)) \
	  $(BIN)/pytest --quiet tests/spark/test_kafka.py

# An S3 server and Hadoop's own small cluster, both by Maven, hence apart from the other tests.
test-stores: .venv/dev.stamp  ## Run the tests of indexes in stores on real servers of S3 and HDFS
	TAMIS_STORES=$(CURDIR)/.cache/stores $(BIN)/pytest --quiet -n 0 tests/spark/test_stores.py

.cache/spark-%/stamp: .venv/dev.stamp
	$(PIP) install --target $(@D) pyspark==$*
	@touch $@

bench-loading: .venv/core.stamp  ## Measure how fast subscriptions are taken in; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.loading --json docs/results/loading.json
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

# DuckDB is measured beside, hence everything is set up. BENCH=... passes options: BENCH='--shapes dense --sizes 10000'.
bench-engine: .venv/dev.stamp  ## Measure how fast events are matched; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.engine --json docs/results/engine.json $(BENCH)
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md
	$(BIN)/python -m benchmarks.cluster_plan docs/results docs/spark.md

bench-detection: .venv/core.stamp  ## Measure detection rules and JSON beside json.loads and jq; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.detection --json docs/results/detection.json $(BENCH)
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

bench-spark: .venv/dev.stamp  ## Measure matching on Spark beside plain plans; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.spark --json docs/results/spark.json $(BENCH)
	$(BIN)/python -m benchmarks.spark_costs --json docs/results/spark_costs.json
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md
	$(BIN)/python -m benchmarks.cluster_plan docs/results docs/spark.md

bench-broker: .venv/dev.stamp  ## Measure what a broker costs; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.broker --json docs/results/broker.json $(BENCH)
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

# An hour for all figures on two cores; nothing else should run. A run that was stopped goes on.
# FIGURES='--paper ps-tree' measures one paper; the other pages are made of the results that docs/results has.
experiments: .venv/dev.stamp  ## Repeat the papers' experiments on a laptop's scale; renew docs/experiments
	$(BIN)/tamis experiments run --jobs $(JOBS) --output .cache/experiments --pages docs/experiments --archive docs/results $(FIGURES)

# After a change of words, claims or plots. Nothing is measured.
report: .venv/dev.stamp  ## Write docs/experiments again, from docs/results
	$(BIN)/tamis experiments report docs/results --pages docs/experiments

# Some minutes for 1,000,000 subscriptions; the first time more, since the filled broker is made. Nothing else should run.
bench-service: .venv/dev.stamp  ## Measure what the network costs; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.service --folder .cache/service --json docs/results/service.json $(BENCH)
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

# Needs an NVIDIA card with its driver, and `pip install 'tamis[gpu]'` in .venv.
bench-gpu: .venv/dev.stamp  ## Measure how fast a GPU matches; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.gpu --json docs/results/gpu.json $(BENCH)
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

bench-history: .venv/dev.stamp  ## Measure what earlier events cost; renew docs/benchmarks.md
	$(BIN)/python -m benchmarks.history --json docs/results/history.json $(BENCH)
	$(BIN)/python -m benchmarks.history_parts --json docs/results/history_parts.json $(BENCH)
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

bench-exits: .venv/core.stamp  ## End many processes while threads are at work
	$(BIN)/python -m benchmarks.exits

bench-first-use: .venv/core.stamp  ## Measure the first use with an empty cache
	$(BIN)/python -m benchmarks.first_use --json docs/results/first_use.json
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

# A minute or two. The README and the page of benchmarks show the figures.
bench-headline: .venv/dev.stamp  ## Measure Tamis beside a scan, DuckDB and polars; renew README.md
	$(BIN)/python -m benchmarks.headline --json docs/results/headline.json --readme README.md $(BENCH)
	$(BIN)/python -m benchmarks.page docs/results docs/benchmarks.md

# The backend keeps files of earlier builds in build/lib.
wheel: .venv/core.stamp  ## Build the wheel into dist
	rm -rf dist build/lib
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

# The wheel is made from the source distribution, so that both hold the same.
release: .venv/dev.stamp  ## Build the source distribution and the wheel into dist, and check them
	rm -rf dist build/lib
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist")' > /dev/null
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist dist/*.tar.gz
	TAMIS_DIST=dist $(BIN)/pytest --quiet tests/test_release.py
	@ls dist

# Eight minutes, five of them to fill the plots.
screenshots: .venv/dev.stamp  ## Take the pictures of the console; renew docs/pictures
	$(BIN)/python -m tests.console.screenshots docs/pictures

docs: .venv/docs.stamp  ## Build the documentation as a site into build/site
	$(BIN)/python docs/site.py build/pages
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs build/pages build/site
	@echo "Open build/site/index.html"

setup: .venv/dev.stamp  ## Set up everything for working on Tamis

lint: .venv/dev.stamp  ## Check style, formatting, types and layers
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter

format: .venv/dev.stamp  ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

clean:  ## Remove .venv and all caches
	rm -rf .venv .cache .hypothesis build src/*.egg-info
	find src benchmarks tests -name __pycache__ -prune -exec rm -rf {} +

# pip is the last that venv makes, so an interrupted run is repeated.
.venv/bin/pip:
	@for python in $(PYTHONS); do \
	  "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2> /dev/null || continue; \
	  "$$python" -c 'import ensurepip, venv' 2> /dev/null || { incomplete="$$python"; continue; }; \
	  echo "Making .venv with $$("$$python" --version)"; \
	  exec "$$python" -m venv .venv; \
	done; \
	if [ -n "$$incomplete" ]; then \
	  echo "$$incomplete cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"; \
	else \
	  echo "Tamis needs Python 3.11 to 3.14; tried: $(PYTHONS). Name another with make PYTHON=/path/to/python3"; \
	fi >&2; \
	exit 1

.venv/core.stamp: pyproject.toml constraints.txt | .venv/bin/pip
	@echo "Installing Tamis and what it needs into .venv (about 550 MB)"
	@$(PIP) install --constraint constraints.txt setuptools
	@$(INSTALL) .
	@touch $@

.venv/dev.stamp: .venv/core.stamp
	@echo "Installing Spark and the tools for tests into .venv (about 1 GB more)"
	@$(INSTALL) '.[dev]'
	@touch $@

.venv/docs.stamp: .venv/dev.stamp
	@echo "Installing the generator of the site into .venv (about 60 MB more)"
	@$(INSTALL) '.[docs]'
	@touch $@
