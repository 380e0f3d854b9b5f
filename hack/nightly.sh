#!/bin/bash
# Runs make targets that are too long for make test, one after another. It goes on after a failure.
# Results are recorded per commit in bin/nightly/COMMIT: the output of a target in TARGET.log, its
# outcome and duration in results.tsv. After an interruption, targets that passed are not repeated.
# usage: nightly.sh TARGET…
set -uo pipefail
cd "$(dirname "$0")/.."
dir=bin/nightly/$(git describe --always --dirty --abbrev=12)
[[ $dir == *-dirty ]] && rm -rf "$dir" # uncommitted changes: earlier results may be of other code
mkdir -p "$dir"
results=$dir/results.tsv
touch "$results"
for target; do
  if grep -q "^$target	passed	" "$results"; then
    echo "$target: passed before"
    continue
  fi
  echo "$target: running, output in $dir/$target.log"
  began=$SECONDS outcome=passed
  "${MAKE:-make}" "$target" > "$dir/$target.log" 2>&1 || outcome=failed
  printf '%s\t%s\t%d s\n' "$target" $outcome $((SECONDS - began)) | tee -a "$results"
done
# The last line of a target is its result.
! awk -F '\t' '{last[$1] = $2} END {for (t in last) print last[t]}' "$results" | grep -q failed
