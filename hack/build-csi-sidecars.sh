#!/bin/bash
# Builds the CSI project's csi-provisioner and csi-resizer from the module
# test/conformance/sidecars, for the images of upstream's tests of CSI. They are kept outside
# the checkout, in a directory named by the hash of what decides them.
# usage: build-csi-sidecars.sh     prints the directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SWIFTLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swiftlet}
module=test/conformance/sidecars

key=$(cat "$module/go.mod" "$module/go.sum" hack/build-csi-sidecars.sh <(go version) | sha256sum | cut -c1-16)
out=$cache/csi-sidecars-$key
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9   # two clones at once share one build
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }

cd "$module"
for try in 1 2 3 4 5; do # a proxy may answer "too many requests"; a later try goes through
  go mod download >&2 && break
  [ $try = 5 ] && { echo "build-csi-sidecars.sh: downloading the modules failed" >&2; exit 1; }
  echo "download failed, trying again in ${try}0 s" >&2; sleep ${try}0
done
echo "building csi-provisioner and csi-resizer (minutes the first time)" >&2
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/" \
  github.com/kubernetes-csi/external-provisioner/v5/cmd/csi-provisioner \
  github.com/kubernetes-csi/external-resizer/cmd/csi-resizer
touch "$out/.complete"
echo "$out"
