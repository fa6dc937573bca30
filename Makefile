# `make help` lists the targets. Each makes its own environment; Python >= 3.10 is all that has to be there.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# STACK=onedl is the maintained set of OpenMMLab packages, STACK=openmmlab the original one.
STACK ?= onedl
ifeq ($(STACK),onedl)
VENV ?= .venv
TORCH ?= 2.14.1
TORCHVISION ?= 0.29.1
PYTHON_BELOW := 4.0
else ifeq ($(STACK),openmmlab)
VENV ?= .venv-original
TORCH ?= 2.1.2
TORCHVISION ?= 0.16.2
# torch 2.1.2 has no wheels for later ones.
PYTHON_BELOW := 3.12
else
$(error STACK is '$(STACK)'; allowed are onedl and openmmlab)
endif
# The pin as setup.py has it.
ONEDL_MMCV = $(shell sed -n "s/.*'\(onedl-mmcv==[^']*\)'.*/\1/p" setup.py)
PYTHON ?= $(shell for p in python3 python python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < tuple(map(int, "$(PYTHON_BELOW)".split("."))))' \
	2>/dev/null && { echo $$p; break; }; done)
# A wheel of mmcv 2.1.0 for STACK=openmmlab (path or URL); without one, pip compiles mmcv, which takes long.
MMCV_WHEEL ?=
# More arguments for pip, such as `--extra-index-url https://download.pytorch.org/whl/cpu` for a PyTorch without
# CUDA, which is much smaller.
PIP_ARGS ?=

PY := $(VENV)/bin/python
STAMP = $(VENV)/.mmssl-$(STACK)-$(TORCH)-$(TORCHVISION)
# One thread for each process: the tests run in several processes, and more threads than cores make them slower.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
TEST_ARGS ?=
DATA ?= synthetic
DATA_ROOT ?=
WORK_DIR ?= work_dirs/demo
# make bench: the config whose training step is measured, the images, and the work dir of a training that used them.
CONFIG ?= configs/fpl/camvid/fpl-cps-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py
BENCH_ROOT = $(or $(DATA_ROOT),$(CAMVID_ROOT))
RUN_DIR ?=

.PHONY: help install demo test test-all lint docs bench

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12
	@echo
	@echo 'variables: STACK=onedl|openmmlab  VENV=$(VENV)  TORCH=$(TORCH)  TORCHVISION=$(TORCHVISION)  PIP_ARGS=  MMCV_WHEEL='
	@echo '           demo: DATA=synthetic|camvid  DATA_ROOT=PATH  WORK_DIR=$(WORK_DIR);  test: TEST_ARGS='
	@echo '           bench: CONFIG=PATH  DATA_ROOT=PATH (default: the environment variable CAMVID_ROOT)  RUN_DIR=work_dirs/NAME'

$(STAMP): setup.py
	@test -n '$(PYTHON)' || { \
		echo 'mmssl needs Python >= 3.10, < $(PYTHON_BELOW), and none is on the PATH; name one with PYTHON=/path/to/python' >&2; exit 1; }
	@echo '[1/4] $(VENV): new environment of $(PYTHON)'
	@$(PY) -m pip --version >/dev/null 2>&1 || '$(PYTHON)' -m venv $(VENV)
	@echo '[2/4] torch $(TORCH), torchvision $(TORCHVISION) (a large download the first time)'
	@$(PY) -m pip install $(PIP_ARGS) 'torch==$(TORCH)' 'torchvision==$(TORCHVISION)'
ifeq ($(STACK),openmmlab)
	@echo '[3/4] mmcv 2.1.0'
	@$(PY) -m pip install $(PIP_ARGS) 'setuptools<81' 'numpy<2' wheel
	@$(PY) -m pip install $(PIP_ARGS) --no-build-isolation 'numpy<2' 'opencv-python<4.11' $(if $(MMCV_WHEEL),'$(MMCV_WHEEL)',mmcv==2.1.0)
else
	@echo '[3/4] the build tools and $(ONEDL_MMCV)'
	@$(PY) -m pip install $(PIP_ARGS) --upgrade 'setuptools>=64' wheel
# Isolated, so that its build finds no torch and leaves the compiled ops out: nothing here needs them, and to
# compile them takes long, where it succeeds.
	@$(PY) -m pip install $(PIP_ARGS) '$(ONEDL_MMCV)'
endif
	@echo '[4/4] mmssl with the extras $(STACK) and test'
	@$(PY) -m pip install $(PIP_ARGS) --no-build-isolation -e '.[$(STACK),test]'
	@touch $(STAMP)

install: $(STAMP)  ## make the environment and install mmssl into it (done by every other target too)

demo: $(STAMP)  ## train supervised, CPS and CPS+FPL on small images and compare them (DATA=camvid DATA_ROOT=... for real ones)
	@$(PY) tools/demo/run_demo.py --work-dir '$(WORK_DIR)' --data $(DATA) $(if $(DATA_ROOT),--data-root '$(DATA_ROOT)')

test: $(STAMP)  ## run the tests, the slow ones left out
	@$(TEST_ENV) $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile -m 'not slow' $(TEST_ARGS)

test-all: $(STAMP)  ## run all tests
	@$(TEST_ENV) $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile $(TEST_ARGS)

lint: $(STAMP)  ## check the style
	@$(PY) -m ruff check .

$(STAMP)-docs: $(STAMP)
	@$(PY) -m pip install $(PIP_ARGS) --no-build-isolation -e '.[docs]'
	@touch $@

docs: $(STAMP)-docs  ## build docs/_build/html
	@$(PY) -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

bench: $(STAMP)  ## measure speed and memory against the baselines
	@echo '== benchmarks/fpl_loss.py'
	@$(PY) benchmarks/fpl_loss.py
	@echo '== benchmarks/adr_loss.py'
	@$(PY) benchmarks/adr_loss.py
	@echo '== benchmarks/cps_step.py'
	@$(PY) benchmarks/cps_step.py --config '$(CONFIG)'
	@echo '== benchmarks/cls_pipeline.py'
	@$(PY) benchmarks/cls_pipeline.py
	@echo '== benchmarks/cls_step.py'
	@$(PY) benchmarks/cls_step.py
	@echo '== benchmarks/pll_step.py'
	@$(PY) benchmarks/pll_step.py
	@echo '== benchmarks/surgery_step.py'
	@$(PY) benchmarks/surgery_step.py
	@echo '== benchmarks/data_pipeline.py'
	@if [ -d '$(BENCH_ROOT)/img_dir/train' ]; then \
		$(PY) benchmarks/data_pipeline.py '$(BENCH_ROOT)' $(if $(RUN_DIR),--work-dir '$(RUN_DIR)'); \
		echo '== benchmarks/method_cost.py'; \
		CAMVID_ROOT='$(BENCH_ROOT)' $(PY) benchmarks/method_cost.py configs/fpl/camvid/*.py; \
	else \
		echo 'skipped, with method_cost.py: they need images; name a folder with img_dir/train and ann_dir/train: make bench DATA_ROOT=/path/to/camvid'; \
	fi
	@$(PY) benchmarks/bench_table.py --write
