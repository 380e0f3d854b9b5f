#!/bin/bash
# Tests the guards against known CVEs of the kubelet. For each line of test/cves/guards.tsv, its test must
# pass, and must fail once the patch of that CVE has removed the guard, in a copy of the source code.
# usage: cves.sh [PATTERN]    only CVEs that match
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} copy=$(mktemp -d) guards=0 effective=0
trap 'rm -rf "$copy"' EXIT
git ls-files -co --exclude-standard -z | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$copy"
# Tests of volumes and of up look for built programs here.
[ -d bin ] && ln -s "$PWD/bin" "$copy/bin"
while IFS=$'\t' read -r cve package test what <&3; do
  [[ $cve == CVE-* && $cve =~ ${1:-.} ]] || continue
  guards=$((guards + 1))
  if ! out=$(cd "$copy" && "$go" test -count=1 -run "$test" "$package" 2>&1) || [[ $out == *"no tests to run"* ]]; then
    printf '%s: failed: the test does not pass with the guard:\n%s\n' "$cve" "$out"
    continue
  fi
  patch="$PWD/test/cves/$cve.patch"
  (cd "$copy" && patch -s -p1 < "$patch") || { echo "$cve: failed: the patch does not apply"; continue; }
  out=$(cd "$copy" && "$go" vet "$package" 2>&1 && "$go" test -count=1 -timeout 5m -run "$test" "$package" 2>&1)
  code=$?
  (cd "$copy" && patch -s -R -p1 < "$patch") || exit 1
  if [ $code = 0 ]; then
    echo "$cve: failed: $test passes without $what"
  elif [[ $out != *"--- FAIL"* && $out != *"panic:"* ]]; then
    printf '%s: failed: the code does not compile without the guard:\n%s\n' "$cve" "$out"
  else
    effective=$((effective + 1))
    printf '%s: %s fails without %s:\n%s\n' "$cve" "$test" "$what" "$(grep -E -m 3 '_test.go:[0-9]+:|panic:' <<< "$out")"
  fi
done 3< test/cves/guards.tsv
echo "trust: {\"class\":\"cves\",\"faults\":$guards,\"survived\":$effective}"
[ $guards = $effective ]
