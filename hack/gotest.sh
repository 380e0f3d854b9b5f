#!/bin/bash
# Runs go test. If tests fail, it repeats their messages at the end, without the long logs of nodes.
# usage: gotest.sh ARGUMENTS OF go test
set -uo pipefail
log=$(mktemp) && trap 'rm -f "$log"' EXIT
"${GO:-go}" test "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
[ "$code" = 0 ] && exit 0
printf '\nfailures:\n'
awk '
  /^[[:space:]]*--- FAIL/ { print; left = 0; next }
  /^(FAIL|panic:|# )/ { print; left = 0; next }
  /^[[:space:]]+[a-z0-9_]+\.go:[0-9]+:/ { left = /_test\.go:/ ? 12 : 0 }
  left > 0 { print substr($0, 1, 500); left-- }
' "$log"
exit "$code"
