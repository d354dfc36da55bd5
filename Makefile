# Attune: two commands do all.
#
#     make demo     sets up, builds, checks the library of schedulers, measures the web server, simulates it, prints a table
#     make test     sets up and passes every test
#     make build    the `attune` program, the threads library and the example server, in target/release

SHELL := /bin/bash
# A Rust that the set-up installed is found even where the login shell was not told.
export PATH := $(HOME)/.cargo/bin:$(PATH)
export CARGO_TARGET_DIR ?= $(CURDIR)/target
ATTUNE := $(CARGO_TARGET_DIR)/release/attune

.PHONY: demo test build lint setup clean

demo: setup build
	@echo "== The library of schedulers, checked"
	$(ATTUNE) check $(wildcard schedulers/*.sched)
	@echo "== A web server at overload, measured and simulated (a few minutes)"
	$(ATTUNE) lab run webserver --quick

build:
	cargo build --release --locked -p attune -p attune-threads
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=release

test:
	tools/setup.sh test
	$(MAKE) --no-print-directory lint
	cargo build --locked --workspace --all-targets
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=debug
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=debug parser-test
	cargo test --locked --workspace --no-fail-fast

lint:
	@! command -v rustfmt >/dev/null || cargo fmt --all --check

setup:
	tools/setup.sh demo

clean:
	cargo clean
