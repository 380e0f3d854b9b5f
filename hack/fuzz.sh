#!/bin/bash
# Runs the fuzz targets one after another. A failing input is saved in its package's testdata, and
# the other targets still run.
# usage: fuzz.sh TIME PATTERN
set -uo pipefail
go=${GO:-go} failed=
while IFS=: read -r file target; do
  package=./$(dirname "$file")
  echo "$package $target"
  "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -parallel 1 "$package" </dev/null || failed+=" $package:$target"
done < <(git grep -o -E '^func Fuzz[A-Za-z0-9]*' -- 'internal/*_test.go' | sed 's/:func /:/' | grep -E ":.*($2)")
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
