# Attune: two commands do all.
#
#     make demo     sets up, builds, checks the library of schedulers, measures the web server, simulates it, prints a table
#     make test     sets up and passes every test
#     make fuzz     throws random texts at the front end
#     make player   the example player; needs what tools/setup.sh test installs
#     make build    the `attune` program, the threads and coop libraries and the example server, in target/release

SHELL := /bin/bash
# A Rust that the set-up installed is found even where the login shell was not told.
export PATH := $(HOME)/.cargo/bin:$(PATH)
export CARGO_TARGET_DIR ?= $(CURDIR)/target
ATTUNE := $(CARGO_TARGET_DIR)/release/attune

.PHONY: demo test build player fuzz lint setup clean

demo: setup build
	@echo "== The library of schedulers, checked"
	$(ATTUNE) check $(wildcard schedulers/*.sched)
	@echo "== A web server at overload, measured and simulated (a few minutes)"
	$(ATTUNE) lab run webserver --quick

build:
	cargo build --release --locked -p attune -p attune-load -p attune-threads -p attune-client -p attune-coop -p attune-coop-preload -p attune-supervisor
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=release

player:
	cargo build --release --locked -p attune-coop
	$(MAKE) --no-print-directory -C examples/player PROFILE=release

test:
	tools/setup.sh test
	$(MAKE) --no-print-directory lint
	cargo build --locked --workspace --all-targets
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=debug
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=debug parser-test
	$(CARGO_TARGET_DIR)/debug/attune vm setup
	cargo test --locked --workspace --no-fail-fast
	$(MAKE) --no-print-directory fuzz

# A short run of each fuzz target; FUZZ_SECONDS=600 for a long one. The flags are explained in language/fuzz/README.md.
FUZZ_SECONDS ?= 20
fuzz:
	command -v cargo-fuzz >/dev/null || cargo install -q --locked cargo-fuzz
	for target in parse check; do \
	    mkdir -p language/fuzz/corpus/$$target && \
	    (cd language && CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/fuzz RUSTC_BOOTSTRAP=1 cargo fuzz run -s none $$target \
	        fuzz/corpus/$$target fuzz/seeds -- -dict=fuzz/grammar.dict -max_total_time=$(FUZZ_SECONDS) -verbosity=0) || exit 1; \
	done

# Clippy's warnings are for us to read: each new compiler has new ones, which must not fail a test.
lint:
	@! command -v rustfmt >/dev/null || cargo fmt --all --check
	@! command -v cargo-clippy >/dev/null || cargo clippy --quiet --locked --workspace --all-targets

setup:
	tools/setup.sh demo

clean:
	cargo clean
