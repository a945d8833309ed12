# make test    everything on this machine: the servers are fetched where that is possible
# make check   what must pass before a change lands (.ci/run)
# make bench   all benchmarks
# make fuzz    each fuzz test for FUZZTIME
# make servers only fetches the servers

SHELL    := /usr/bin/env bash -o pipefail
FUZZTIME ?= 20s
BENCH    ?= .

# The root module and, where there is a go.work, those tied to it.
MODULES = $(shell go list -m -f '{{.Dir}}')
each    = set -e; for dir in $(MODULES); do cd "$$dir"; $(1); done

# Cases on real servers mostly sleep: eight at a time, however few cores there are.
.PHONY: test vet check bench fuzz servers

test: vet
	@if [ -n "$$DISTMUTEX_REDIS_SERVERS" ]; then \
		one_by_one='-p 1'; \
	elif [ -n "$$DISTMUTEX_REDIS_BIN" ] || scripts/servers.sh; then \
		export DISTMUTEX_REQUIRE_SERVERS=1; \
	else \
		echo 'make test: going on with what stands on PATH; each test that misses a server is skipped'; \
		echo 'make test: and says what it could not check (go test -v shows it)'; \
	fi; \
	$(call each,go test -race -count=1 -parallel=8 -timeout=25m $$one_by_one ./...)

vet:
	@$(call each,go vet ./...)

check:
	.ci/run

bench:
	@$(call each,go test -run='^$$' -bench='$(BENCH)' -benchmem ./...)

# go test fuzzes one test of one package at a time.
fuzz:
	@$(call each,for pkg in $$(go list ./...); do \
		for name in $$(go test -list='^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$name"; go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) $$pkg; \
		done; \
	done)

servers:
	@scripts/servers.sh
