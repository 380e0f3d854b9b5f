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

while IFS=: read -r file target; do
  dir=$(dirname "$file") out=$(mktemp)
  echo "./$dir $target"
  "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -parallel 1 "./$dir" </dev/null 2>&1 | tee "$out"
  [ "${PIPESTATUS[0]}" = 0 ] || { failed+=" ./$dir:$target"; failures=$((failures + 1)); }
  inputs=$((inputs + $(grep -o 'execs: [0-9]*' "$out" | tail -n 1 | cut -d' ' -f2 || echo 0)))
  rm -f "$out"
  keep "$dir" "$target"
done < <(git grep --untracked -o -E '^func Fuzz[A-Za-z0-9]*' -- 'internal/*_test.go' | sed 's/:func /:/' | grep -E ":.*($2)")
echo "trust: {\"class\":\"fuzz\",\"faults\":$inputs,\"survived\":$((inputs - failures))}"
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
