# make test    everything on this machine: the servers are fetched where that is possible
# make check   what must pass before a change lands (.ci/run)
# make bench   ours beside its peers on real servers: the table and the plot of doc/performance.md
# make bench ETCD=1  the same with etcd's lock beside them: a large build (bench/etcd)
# make micro   the benchmarks of single packages
# make fuzz    each fuzz test for FUZZTIME
# make soak    simulated schedules on all cores for SOAKTIME, without the race detector
# make chaos   processes on real servers under faults, five or one, each flavour: the table of doc/evidence.md
# make servers only fetches the servers

SHELL    := /usr/bin/env bash -o pipefail
FUZZTIME ?= 20s
SOAKTIME ?= 10m
BENCH    ?= .

# What else the comparison is told, as -scenario one,free or -rounds 3.
BENCHFLAGS ?=

# The root module and, where there is a go.work, those tied to it.
MODULES = $(shell go list -m -f '{{.Dir}}')
each    = set -e; for dir in $(MODULES); do cd "$$dir"; $(1); done
ALL     = $(MODULES:%=%/...)

# What takes longest begins first, so that no core waits for it in the end.
LONGEST = ./backend/redis ./internal/sim ./internal/endtoend

# Cases on real servers mostly sleep: eight at a time, however few cores there are.
.PHONY: test vet check bench micro fuzz soak chaos servers

test: vet
	@if [ -n "$$DISTMUTEX_REDIS_SERVERS" ]; then \
		one_by_one='-p 1'; \
	elif [ -n "$$DISTMUTEX_REDIS_BIN" ] || scripts/servers.sh; then \
		export DISTMUTEX_REQUIRE_SERVERS=1; \
	else \
		echo 'make test: going on with what stands on PATH; each test that misses a server is skipped'; \
		echo 'make test: and says what it could not check (go test -v shows it)'; \
	fi; \
	go test -race -count=1 -parallel=8 -timeout=25m $$one_by_one $(LONGEST) $(ALL)

vet:
	@go vet $(ALL)

check:
	.ci/run

bench:
	@[ -n "$$DISTMUTEX_REDIS_BIN" ] || scripts/servers.sh >&2 || true # what stands on PATH may do
	@mkdir -p .cache
	@cd bench$(if $(ETCD),/etcd && export GOWORK=off) && go build -o "$(CURDIR)/.cache/bench-run" .
	@.cache/bench-run -out .cache/bench $(BENCHFLAGS)
	@cd bench/internal/contest && go test -count=1 -v -run='Quorum|Line' . -waiters=10000 | sed -n 's/^ *virtual_test.go:[0-9]*: /virtual time: /p'

micro:
	@$(call each,go test -run='^$$' -bench='$(BENCH)' -benchmem ./...)

# go test fuzzes one test of one package at a time.
fuzz:
	@$(call each,for pkg in $$(go list ./...); do \
		for name in $$(go test -list='^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$name"; go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) $$pkg; \
		done; \
	done)

# The seeds begin anew each day, so that no two days run the same ones.
SOAKSEED ?= $(shell echo $$(($$(date +%s) / 86400 * 100000000)))

soak:
	@go test ./internal/sim -run='^TestSoak$$' -v -count=1 -timeout=0 -soak=$(SOAKTIME) -first=$(SOAKSEED)

# As -seed 7 or -acquisitions 1000000; without it 20,000 acquisitions of each make under each flavour.
CHAOSFLAGS ?=

chaos:
	@mkdir -p .cache && cd chaos && go build -o ../.cache/chaos-run .
	@.cache/chaos-run -nodes 5,1 -client ours,redlock,redsync -mode minority,beyond -out .cache/chaos $(CHAOSFLAGS)

servers:
	@scripts/servers.sh
