#!/bin/bash
# Builds metrics-server from the module test/metrics-server, for the test of kubectl top. It
# and its manifests are kept outside the checkout, in a directory named by the hash of what
# decides them.
# usage: build-metrics-server.sh     prints the directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SWIFTLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swiftlet}
module=test/metrics-server
package=sigs.k8s.io/metrics-server

key=$(cat "$module/go.mod" "$module/go.sum" hack/build-metrics-server.sh <(go version) | sha256sum | cut -c1-16)
out=$cache/metrics-server-$key
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9   # two clones at once share one build
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }

cd "$module"
for try in 1 2 3 4 5; do # a proxy may answer "too many requests"; a later try goes through
  go mod download >&2 && break
  [ $try = 5 ] && { echo "build-metrics-server.sh: downloading the modules failed" >&2; exit 1; }
  echo "download failed, trying again in ${try}0 s" >&2; sleep ${try}0
done
echo "building metrics-server" >&2
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/metrics-server" $package/cmd/metrics-server
install -m 644 "$(go list -m -f '{{.Dir}}' $package)"/manifests/base/{rbac,apiservice}.yaml "$out"
touch "$out/.complete"
echo "$out"
