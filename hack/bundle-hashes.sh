#!/bin/bash
# Prints the SHA-256 of each program in bin/bundle and bin/api, for the linker: name=sum,name=sum. Prints
# nothing if there is no bundle; `swiftlet up` of such a build needs --verify-bundle=false.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -d bin/bundle/ ] || exit 0
{
  (cd -P bin/bundle && find . -type f -perm -u+x -printf '%P\n' | sort | xargs -r sha256sum)
  [ ! -d bin/api/ ] || (cd -P bin/api && find . -type f -perm -u+x -printf '%P\n' | sort | xargs -r sha256sum | sed 's|  |  api/|')
} | awk '{printf "%s%s=%s", sep, $2, $1; sep = ","}'
