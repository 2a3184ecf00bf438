# The project's commands. `make help` lists them.

CARGO ?= cargo
PYTHON ?= python3
# Also the rust-version in Cargo.toml.
RUST_MINOR := 89

.DEFAULT_GOAL := help
.PHONY: help demo demo-web test packages packages-again packages-check lint fmt bench bench-check fuzz worlds sanitize deny torture slots keyed mutants api minimal version headers docs clean deps rust

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: rust ## A flash sale with and without the lock, a queue and a schedule whose workers are killed (no server needed)
	@CARGO="$(CARGO)" PYTHON="$(PYTHON)" demo/run

demo-web: rust ## The dashboard on a store where a sale goes on and a worker was killed, at http://127.0.0.1:7380/ until Ctrl-C
	@CARGO="$(CARGO)" demo/web

test: rust deps ## Check format, lints and documentation, and run every test
	$(PYTHON) tests/run

packages: rust deps ## Build what is installed without a compiler into dist/: wheel, npm, PHP, C, Debian, crates (PARTS="wheel npm" PLATFORMS="linux-x86_64-gnu")
	$(PYTHON) .ci/packages/run $(PARTS) $(PLATFORMS:%=--platform %)

packages-check: deps ## Install what is in dist/ in empty Debians without a compiler, as root, and run each README's first example
	$(PYTHON) tests/packages/run $(PARTS)

packages-again: rust ## Build the packages of this commit once more in another folder, and compare the hashes with those in dist/
	$(PYTHON) .ci/packages/again $(PARTS) $(PLATFORMS:%=--platform %)

lint: rust ## Check format, lints and documentation only
	$(PYTHON) tests/run --lint

fmt: rust ## Format the code
	$(CARGO) fmt

bench: rust ## Compare speed with that of bare clients and of other packages
	@bash tests/deps bench
	$(CARGO) build --release --locked --package stanchion-cli
	$(CARGO) run --release --locked --package stanchion-tests --example bench
	$(PYTHON) bindings-python/tests/bench
	$(PYTHON) bindings-node/tests/bench
	$(PYTHON) bindings-c/tests/bench
	$(PYTHON) bindings-c/php/tests/bench

bench-check: rust ## Run the short benchmarks of the core, and say which figure is worse than its bar in tests/bench/bars.json
	@bash tests/deps bench
	$(CARGO) run --release --locked --package stanchion-tests --example bench -- check

fuzz: rust deps ## Hostile calls to the C library, hostile replies and URLs to the core, for SECONDS=300 each
	STANCHION_FUZZ_SECONDS=$(or $(SECONDS),300) STANCHION_FUZZ_SEED=$(or $(SEED),$$(date +%s)) \
		$(CARGO) test --locked --workspace --test faults fuzz -- --nocapture
	$(PYTHON) bindings-c/tests/run --fuzz $(or $(SECONDS),300)

worlds: rust ## Everything that can happen in small worlds, as deep as SECONDS=300 of one core allow in all
	STANCHION_WORLDS_SECONDS=$(or $(SECONDS),300) \
		$(CARGO) test --locked --workspace --test worlds -- --nocapture

sanitize: rust deps ## Play the scenarios in Python and Node under AddressSanitizer; make test first
	$(PYTHON) tests/sanitize

deny: rust ## Check licences, bans, sources and advisories of what is linked, with cargo-deny
	$(PYTHON) tests/deny

torture: rust deps ## Workers in all languages under faults for MINUTES=1, with SEED=n, on a server of its own or on URL=; then what was kept of the promises
	@$(PYTHON) tests/torture/run $(if $(URL),--url "$(URL)") $(or $(MINUTES),1) $(SEED)

slots: rust deps ## Schedules of every second under kills, wrong clocks and a deploy, for SECONDS=600 on each store, with SEED=n
	@$(PYTHON) tests/torture/slots $(or $(SECONDS),600) $(SEED)

keyed: rust deps ## KEYS=100000 keys of which one task may run at a time, under kills for at most SECONDS=600 on each store, with SEED=n
	@$(PYTHON) tests/torture/keys $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED)) $(if $(KEYS),--keys $(KEYS))

mutants: rust deps ## Put deliberate bugs into a copy of the sources; the tests named for each must fail (NAMES="one other")
	$(PYTHON) tests/mutants/run $(NAMES)

api: rust ## Compare the public API of the Rust crate with core/api.txt; WRITE=1 writes that file anew
	$(PYTHON) tests/api $(if $(WRITE),--write)

minimal: rust ## Compile the published crates with the oldest dependencies that they promise
	$(PYTHON) tests/minimal

version: ## Print the version of all packages; NEW=1.2.3 raises it everywhere, with CHANGELOG.md
	$(PYTHON) .ci/version $(NEW)

headers: rust ## Write the headers of the C library anew
	$(CARGO) run --quiet --locked --package stanchion-c --example headers

docs: rust deps ## Build the documentation site into target/site, references and all, and check its links
	$(PYTHON) docs/site/build

clean: ## Remove everything that was built
	$(CARGO) clean

deps: ## Install what the tests need, or say what is missing
	@bash tests/deps

rust:
	@version=$$($(CARGO) --version 2>/dev/null | cut -d ' ' -f 2); \
	minor=$$(echo "$$version" | cut -d . -f 2); \
	if [ -z "$$version" ]; then \
		echo "Rust is missing. Install 1.$(RUST_MINOR) or newer: https://rustup.rs" >&2; exit 1; \
	elif [ "$$(echo "$$version" | cut -d . -f 1)" = 1 ] && [ "$$minor" -lt $(RUST_MINOR) ]; then \
		echo "Rust $$version is too old: 1.$(RUST_MINOR) or newer is needed. Try: rustup update stable" >&2; exit 1; \
	elif ! command -v cc >/dev/null; then \
		echo "A C compiler is missing (no cc in PATH). On Debian: apt-get install gcc libc6-dev" >&2; exit 1; \
	fi
