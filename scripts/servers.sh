#!/usr/bin/env bash
# Brings the servers that the tests run on into a folder of the user's cache:
# Redis 7, Redis 8.4 or later, Valkey 9. Nothing is installed and no root is
# needed: Debian's (or Ubuntu's) packages are unpacked side by side, each with
# the libraries it was built for, and run by the loader among those.
#
# The packages come from wherever this machine's own apt sources point, from the
# suites named in suites(), as the newest version that fits the flavour, and apt
# checks their signatures with the keys that those sources name.
#
#   scripts/servers.sh        fetches what is missing; prints one line a flavour
#
# It exits with 0 if all are there, else with 1 after having said what is
# missing and why. internal/redistest looks in the same folder.
set -euo pipefail

dir=${XDG_CACHE_HOME:-$HOME/.cache}/distmutex/servers-1
flavours='redis7 redis8 valkey9'

say() { printf 'servers: %s\n' "$*" >&2; }

# The package that holds a flavour's executable, and the versions that will do.
package() { case $1 in valkey9) echo valkey-tools ;; *) echo redis-tools ;; esac; }
fits() {
  case $1 in
    redis7) echo '^([0-9]+:)?7\.' ;;
    redis8) echo '^([0-9]+:)?8\.([4-9]|[1-9][0-9])\.' ;;
    valkey9) echo '^([0-9]+:)?9\.' ;;
  esac
}

# The suites that between them serve all flavours.
suites() {
  local ID='' ID_LIKE=''
  # shellcheck disable=SC1091
  . /etc/os-release
  case " $ID $ID_LIKE " in
    *' ubuntu '*) echo noble devel ;;
    *' debian '*) echo bookworm sid experimental ;;
  esac
}

# A flavour is there if its executable runs.
version() {
  local v
  v=$("$dir/bin/$1-server" --version 2>/dev/null) && [[ $v =~ ^(Redis|Valkey)' server v='[0-9.]+ ]] && echo "${BASH_REMATCH[0]}"
}

# look puts what is there into $lines and what is not into $todo.
look() {
  local f v
  lines='' todo=''
  for f in $flavours; do
    if v=$(version "$f"); then lines+="$f: $v"$'\n'; else todo+=" $f"; fi
  done
}

# own_source prints this machine's main apt source, in the deb822 form, without
# its suites. Both forms of sources are read; the distribution's usual files
# come first, so that another publisher's source is not taken for its own.
own_source() {
  local sourceparts='' sourcelist='' f
  eval "$(apt-config shell sourceparts Dir::Etc::sourceparts/d sourcelist Dir::Etc::sourcelist/f)"
  for f in "$sourceparts"{debian,ubuntu}.sources "$sourcelist" "$sourceparts"*.list "$sourceparts"*.sources; do
    [ -r "$f" ] || continue
    case $f in
      *.sources) stanza <"$f" && return ;;
      *) one_line <"$f" && return ;;
    esac
  done
  return 1
}

# stanza takes the first one that serves main and is not for security alone.
# Its continued lines (an inline key, say) stay with their field.
stanza() {
  awk '
    function flush() {
      if (uris != "" && uris !~ /security/ && suites !~ /-security/ && types ~ /(^| )deb( |$)/ &&
          comps ~ /(^| )main( |$)/ && enabled !~ /^no/) { printf "%s", text; found = 1; exit }
      text = uris = types = suites = comps = enabled = ""
    }
    /^#/ { next }
    /^[ \t]*$/ { flush(); next }
    /^[^ \t]/ {
      field = tolower($0); sub(/:.*/, "", field)
      value = $0; sub(/^[^:]*:[ \t]*/, "", value)
      if (field == "uris") uris = value
      if (field == "types") types = value
      if (field == "suites") suites = value
      if (field == "components") comps = value
      if (field == "enabled") enabled = tolower(value)
    }
    field != "types" && field != "suites" && field != "targets" { text = text $0 "\n" }
    END { if (!found) { flush() } exit !found }'
}

# one_line does the same for "deb [options] URI suite components".
one_line() {
  awk '
    $1 != "deb" { next }
    {
      line = $0; options = ""
      if (match(line, /\[[^]]*\]/)) {
        options = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
      }
      n = split(line, word, /[ \t]+/)
      comps = ""
      for (i = 4; i <= n && word[i] !~ /^#/; i++) comps = comps " " word[i]
      if (word[2] ~ /security/ || word[3] ~ /-security/ || comps !~ / main( |$)/) next
      printf "URIs: %s\nComponents:%s\n", word[2], comps
      if (match(options, /signed-by=[^ ]+/)) printf "Signed-By: %s\n", substr(options, RSTART + 10, RLENGTH - 10)
      if (match(options, /trusted=[^ ]+/)) printf "Trusted: %s\n", substr(options, RSTART + 8, RLENGTH - 8)
      found = 1; exit
    }
    END { exit !found }'
}

# prepare makes a private apt in $1, which knows nothing of what is installed
# here: a package's libraries are all fetched, whatever this machine has.
prepare() {
  mkdir -p "$1"/{parts,lists/partial,cache/archives/partial,debs}
  { own_source && printf 'Types: deb\nTargets: Packages\nSuites: %s\n' "$(suites)"; } >"$1/parts/own.sources" || {
    say 'no apt source of the distribution was found'
    return 1
  }
  # Nothing of these is run: they are for users, services and a real install.
  local p
  for p in adduser systemd passwd debconf openssl-provider-legacy; do
    printf 'Package: %s\nStatus: install ok installed\nVersion: 99:1\nArchitecture: all\nMulti-Arch: foreign\nDescription: not needed\nMaintainer: none\n\n' "$p"
  done >"$1/status"
  # The machine's own settings (a proxy, say) hold except for what follows. They
  # are read once: apt would let them override a file of ours.
  { apt-config dump; cat; } >"$1/apt.conf" <<CONF
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$1/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::status "$1/status";
Dir::State::Lists "$1/lists";
Dir::Cache "$1/cache";
Dir::Cache::pkgcache "pkgcache.bin";
APT::Default-Release "";
APT::Sandbox::User "$(id -un)";
APT::Update::Error-Mode "any";
Acquire::Retries "3";
Acquire::http::Timeout "30";
CONF
  # A suite that is gone must not cost those that are served.
  APT_CONFIG=$1/apt.conf apt-get -q update >"$1/update.log" 2>&1 ||
    { say 'not all of the package lists could be had:'; grep -E '^[EW]:' "$1/update.log" | head -n 5 >&2; }
}

# fetch unpacks one flavour. Each step says that it failed: in a condition, as it
# is called, set -e does nothing.
fetch() {
  local f=$1 work=$2 pkg v new=$2/$1
  pkg=$(package "$f")
  v=$(apt-cache madison "$pkg" | awk -F' *[|] *' -v want="$(fits "$f")" '$2 ~ want { print $2; exit }')
  [ -n "$v" ] || { say "$f: no suite of ($(suites)) serves a fitting $pkg"; return 1; }
  say "$f: fetching $pkg $v"
  apt-get -qq --no-install-recommends -s install "$pkg=$v" |
    awk '$1 == "Inst" && ($2 ~ /^lib/ || $2 == pkg) { sub(/^\(/, "", $3); print $2 "=" $3 }' pkg="$pkg" >"$work/$f.list" || return 1
  mkdir -p "$work/debs/$f" "$new"
  (cd "$work/debs/$f" && xargs apt-get -qq download <"$work/$f.list") || return 1
  local deb
  for deb in "$work/debs/$f"/*.deb; do dpkg-deb -x "$deb" "$new" || return 1; done
  rm -rf "${new:?}"/usr/share "${new:?}"/usr/lib/*/gconv
  wrapper "$f" "$new" >"$work/$f-server" || return 1
  chmod 755 "$work/$f-server"
  rm -rf "${dir:?}/$f"
  mv "$new" "$dir/$f"
  mv "$work/$f-server" "$dir/bin/$f-server"
  version "$f" >/dev/null || { say "$f: it was unpacked and does not run:"; "$dir/bin/$f-server" --version >&2; return 1; }
}

# wrapper prints the script that runs a flavour. The packages' executable is the
# server too, when it is called so.
wrapper() {
  local loader lib exe name=${1%%[0-9]*}
  loader=$(cd "$2" && find lib* usr/lib* -type f -name 'ld-linux*.so*' -print -quit 2>/dev/null)
  exe=usr/bin/$name-check-rdb
  if [ -z "$loader" ] || [ ! -x "$2/$exe" ]; then
    say "$1: the packages hold no loader or no $exe"
    return 1
  fi
  lib=$(basename "$(dirname "$loader")")
  cat <<SH
#!/bin/sh
root=\${0%/*}/../$1
exec "\$root/$loader" --library-path "\$root/usr/lib/$lib:\$root/lib/$lib" --argv0 $name-server "\$root/$exe" "\$@"
SH
}

fetch_missing() {
  local f tool
  for tool in apt-get apt-cache apt-config dpkg-deb flock; do
    command -v "$tool" >/dev/null || { say "without $tool nothing can be fetched here"; return; }
  done
  mkdir -p "$dir/bin"
  exec 9>"$dir/lock"
  flock 9 # one run at a time; the next finds the work done
  look
  [ -n "$todo" ] || return 0
  rm -rf "$dir"/tmp.* # of a run that was killed
  work=$(mktemp -d "$dir/tmp.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  prepare "$work" || return 0
  export APT_CONFIG=$work/apt.conf
  for f in $todo; do fetch "$f" "$work" || say "$f: could not be fetched"; done
}

look
if [ -n "$todo" ]; then
  fetch_missing
  look
fi
printf '%s' "$lines"
[ -z "$todo" ] || { say "missing:$todo"; exit 1; }
