#!/bin/bash
# Runs go test. If something failed, what the failed tests said themselves is repeated at
# the end: the logs of the nodes, which they also print, are long.
# usage: gotest.sh ARGUMENTS OF go test
set -uo pipefail
log=$(mktemp) && trap 'rm -f "$log"' EXIT
"${GO:-go}" test "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
[ "$code" = 0 ] && exit 0
printf '\nwhat failed:\n'
awk '
  /^[[:space:]]*--- FAIL/ { print; left = 0; next }
  /^(FAIL|panic:|# )/ { print; left = 0; next }
  /^[[:space:]]+[a-z0-9_]+\.go:[0-9]+:/ { left = /_test\.go:/ ? 12 : 0 }
  left > 0 { print substr($0, 1, 500); left-- }
' "$log"
exit "$code"
