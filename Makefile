# Attune: two commands do all.
#
#     make demo     sets up, builds, and shows in three minutes what Attune does, the same each time
#     make test     sets up and passes every test
#     make lint     formats, widths, words and warnings
#     make fuzz     throws random texts at the front end
#     make player   the example player; needs what tools/setup.sh test installs
#     make database MariaDB's loadable function; needs what tools/setup.sh database installs
#     make build    `attune`, the threads and coop libraries, the example server: target/release

SHELL := /bin/bash
# A Rust that the set-up installed is found even where the login shell was not told.
export PATH := $(HOME)/.cargo/bin:$(PATH)
export CARGO_TARGET_DIR ?= $(CURDIR)/target
ATTUNE := $(CARGO_TARGET_DIR)/release/attune
# The programs and libraries of a release.
CRATES := attune attune-load attune-replies attune-threads attune-client attune-coop \
    attune-coop-preload attune-daemon

.PHONY: demo test build player database fuzz lint style words setup clean

demo: setup build
	$(ATTUNE) vm setup
	$(ATTUNE) lab run demo

build:
	cargo build --release --locked $(addprefix -p ,$(CRATES))
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=release
	$(MAKE) --no-print-directory -C examples/pool PROFILE=release
	$(MAKE) --no-print-directory -C examples/tickets PROFILE=release
	$(MAKE) --no-print-directory -C examples/cameras PROFILE=release
	$(MAKE) --no-print-directory -C examples/webapp PROFILE=release

player:
	cargo build --release --locked -p attune-coop
	$(MAKE) --no-print-directory -C examples/player PROFILE=release

database:
	cargo build --release --locked -p attune-client
	$(MAKE) --no-print-directory -C examples/database PROFILE=release

test:
	tools/setup.sh test
	$(MAKE) --no-print-directory style
	cargo build --locked --workspace --all-targets
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=debug
	$(MAKE) --no-print-directory -C examples/pool PROFILE=debug
	$(MAKE) --no-print-directory -C examples/tickets PROFILE=debug
	$(MAKE) --no-print-directory -C examples/cameras PROFILE=debug
	$(MAKE) --no-print-directory -C examples/webapp PROFILE=debug
	$(MAKE) --no-print-directory -C examples/webserver PROFILE=debug parser-test proxy-test
	$(CARGO_TARGET_DIR)/debug/attune vm setup
	tools/suites.pl --locked

# A short run of each fuzz target; FUZZ_SECONDS=600 for a long one. language/fuzz/README.md explains
# the flags.
FUZZ_SECONDS ?= 20
FUZZ_TARGET_DIR := $(CARGO_TARGET_DIR)/fuzz
fuzz:
	command -v cargo-fuzz >/dev/null || cargo install -q --locked cargo-fuzz
	for target in parse check; do \
	    mkdir -p language/fuzz/corpus/$$target && \
	    (cd language && CARGO_TARGET_DIR=$(FUZZ_TARGET_DIR) RUSTC_BOOTSTRAP=1 \
	        cargo fuzz run -s none $$target fuzz/corpus/$$target fuzz/seeds -- \
	        -dict=fuzz/grammar.dict -max_total_time=$(FUZZ_SECONDS) -verbosity=0) || exit 1; \
	done

# What needs no compiler.
style: words
	cargo fmt --all --check
	git ls-files -z '*.c' '*.h' | xargs -0 clang-format-19 --dry-run -Werror

# rustc's warnings fail, here and in make test. Clippy's are for us to read: each new compiler has
# new ones.
lint: style
	cargo clippy --quiet --locked --workspace --all-targets
	cargo clippy --quiet --locked --workspace --all-targets -- -A clippy::all -D warnings

# What the style guide in CONTRIBUTING.md forbids and a program can see.
words:
	tools/words.pl

setup:
	tools/setup.sh demo

clean:
	cargo clean
