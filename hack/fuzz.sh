#!/bin/bash
# Runs the fuzz targets one after the other. What one finds stays in its package's testdata;
# the others still run.
# usage: fuzz.sh TIME PATTERN
set -uo pipefail
go=${GO:-go} failed=
for package in $("$go" list ./internal/...); do
  for target in $("$go" test -list "$2" "$package" 2>/dev/null | grep ^Fuzz); do
    echo "$package $target"
    "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -parallel 1 "$package" || failed+=" $package:$target"
  done
done
[ -z "$failed" ] || { echo "found something:$failed"; exit 1; }
