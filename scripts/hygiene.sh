#!/usr/bin/env bash
# House rules that no linter knows, for all files that git tracks. Prints each
# breach and exits with 1 if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0
breach() { # MESSAGE COMMAND…, which prints the places
  local places
  places=$("${@:2}")
  [ -z "$places" ] || { printf '%s:\n%s\n' "$1" "$places"; status=1; }
}

# search prints what matches in tracked text files other than checksums.
search() { git grep -nIE "$@" -- . ':!go.sum' ':!*/go.sum' || [ $? = 1 ]; }

long_files() {
  git ls-files -z '*.go' '*.sh' '*.lua' Makefile .ci/run | xargs -0 wc -l | awk '$2 != "total" && $1 > 300 { print $2 ": " $1 " lines" }'
}

# The registries this machine is set up for: whoever builds elsewhere has others.
registries() {
  go env GOPROXY | tr ',|' '\n' | sed -nE 's,^https?://([^/]+@)?([^/]+).*,\2,p'
  if command -v npm >/dev/null; then npm config get registry | sed -nE 's,^https?://([^/]+).*,\1,p'; fi
  grep -rhoE 'https?://[^/ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | sed -E 's,^https?://,,' || true
}

registry_hosts() {
  local host
  registries | sort -u | while read -r host; do search -i -F -e "$host"; done
}

# Brackets keep the patterns from matching themselves.
breach 'over 300 lines: split it' long_files
breach 'unfinished work: finish it or file an issue' search '\b(TO[D]O|FIX[M]E|X[X]X)\b'
breach 'a path of one machine' search '(^|[^[:alnum:]_.~})/-])/(wor[k]|roo[t]|home/[a-z]|User[s]|tm[p]/[a-z])'
breach 'a host of a package registry' registry_hosts

exit $status
