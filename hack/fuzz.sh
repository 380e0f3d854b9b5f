#!/bin/bash
# Runs the fuzz targets one after another. A failing input is saved in its package's testdata, and
# the other targets still run. Inputs that reached new code are kept there, too, up to 20 small ones of
# each target, so that every later test begins with them.
# usage: fuzz.sh TIME PATTERN
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} failed= inputs=0 failures=0
cache=$("$go" env GOCACHE)/fuzz/$("$go" list -m)

# keep DIRECTORY TARGET copies inputs from the cache.
keep() {
  local from=$cache/$1/$2 to=$1/testdata/fuzz/$2
  [ -d "$from" ] || return 0
  mkdir -p "$to"
  local have; have=$(find "$to" -type f | wc -l)
  find "$from" -type f -size -2 -printf '%s %p\n' | sort -n | while read -r _ file; do
    [ "$have" -lt 20 ] || break
    [ -e "$to/$(basename "$file")" ] || { cp "$file" "$to/" && have=$((have + 1)); }
  done
  rmdir --ignore-fail-on-non-empty "$to"
}

# Targets write files, and minimizing an input writes thousands: on a disk some ran 3 inputs in 20 s.
[ -d /dev/shm ] && export TMPDIR=/dev/shm

# run TIME DIRECTORY TARGET OUTPUT
run() {
  local module=. package=$2
  case $2 in apiserver/*) module=apiserver package=${2#apiserver/} ;; esac # a module of its own
  "$go" -C "$module" test -run '^$' -fuzz "^$3\$" -fuzztime "$1" -fuzzminimizetime 1s -parallel 1 "./$package" </dev/null 2>&1 | tee "$4"
  return "${PIPESTATUS[0]}"
}

# ended reports whether the end of the time failed, and no input did: https://go.dev/issue/75804, fixed in Go 1.27.
ended() { grep -qx ' *context deadline exceeded' "$1" && ! grep -qE 'Failing input|panic:' "$1"; }

while IFS=: read -r file target; do
  dir=$(dirname "$file") out=$(mktemp)
  echo "./$dir $target"
  run "$1" "$dir" "$target" "$out" || { ended "$out" && echo "again, as no input failed" && run "$1" "$dir" "$target" "$out"; } ||
    { failed+=" ./$dir:$target"; failures=$((failures + 1)); }
  inputs=$((inputs + $(grep -o 'execs: [0-9]*' "$out" | tail -n 1 | cut -d' ' -f2 || echo 0)))
  rm -f "$out"
  keep "$dir" "$target"
done < <(git grep --untracked -o -E '^func Fuzz[A-Za-z0-9]*' -- 'internal/*_test.go' 'apiserver/*_test.go' | sed 's/:func /:/' | grep -E ":.*($2)")
echo "trust: {\"class\":\"fuzz\",\"faults\":$inputs,\"survived\":$((inputs - failures))}"
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
