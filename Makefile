# `make run` and `make test` do all of their own set-up. Everything else is for people who work on the code.

.PHONY: help run example test build setup lint format tidy asan tsan fuzz fuzz-replay bench coverage figures simulate crash-loop test-lab clean
SHELL := /bin/bash
.DEFAULT_GOAL := run

export JOBS ?= $(shell nproc)

run: build          ## a control plane and agents, on this machine's GPUs or on a simulated fleet; Ctrl-C stops it
	@exec build/bin/bulkhead up --nodes 4 --gpus 8 --driver-node --data build/fleet

example: build      ## compile the shipped example under all three threat models
	@scripts/show-example.sh

test: setup         ## build and run every test; closes with "N passed, N failed"
	@scripts/build.sh dev
	@scripts/test.sh dev

build: setup        ## the programs, under build/bin/
	@scripts/build.sh dev programs

help:               ## this list
	@grep -hE '^[a-z -]+:.*## ' Makefile | sed -E 's/:[^#]*##/\t/' | expand -t 18

setup:
	@scripts/setup.sh

lint: setup format tidy                 ## the formatter and the linter, as the gate runs them

format:
	@scripts/check-format.sh

tidy:
	@scripts/tidy.sh

asan tsan: setup    ## the tests under address+undefined, or thread, sanitizers; PART=inner or outer for a part of them
	@scripts/build.sh $@ $(PART)
	@scripts/test.sh $@ $(PART)

fuzz: setup         ## every fuzz target for SECONDS_EACH (default 60)
	@scripts/build.sh asan
	@scripts/fuzz.sh $${SECONDS_EACH:-60}

fuzz-replay: setup  ## every fuzz target over its committed corpus, once
	@scripts/build.sh asan
	@scripts/fuzz.sh 0

simulate: build     ## the whole fleet under every fault: SEEDS (default 1..20), SPEC (default)
	@build/bin/bulkhead-sim --seeds $${SEEDS:-1..20} --spec $${SPEC:-default}

crash-loop: build   ## real processes, killed again and again under load: ROUNDS (default 20)
	@scripts/crash-loop.py --rounds $${ROUNDS:-20}

test-lab: build     ## real kernel drivers in a software machine (lab/README.md): SCENARIOS (default: the main ones)
	@lab/run $(SCENARIOS)

bench: setup        ## benchmarks
	@scripts/build.sh dev benches
	@for program in build/dev/bin/*_bench; do echo "== $$program"; $$program; done

figures: setup      ## the figures of docs/promises.md, measured here
	@scripts/figures.sh

coverage: setup     ## line coverage by room
	@scripts/build.sh coverage
	@scripts/test.sh coverage
	@scripts/coverage.sh

clean:
	@rm -rf build
