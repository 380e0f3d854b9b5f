#!/bin/bash
# Builds critest, crictl and ginkgo from the module test/critools/suite. They are kept
# outside the checkout, in a directory named by the hash of what decides them.
# usage: build-critools.sh     prints the directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SWIFTLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swiftlet}
module=test/critools/suite
package=sigs.k8s.io/cri-tools

key=$(cat "$module/go.mod" "$module/go.sum" hack/build-critools.sh <(go version) | sha256sum | cut -c1-16)
out=$cache/critools-$key
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9   # two clones at once share one build
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }

cd "$module"
for try in 1 2 3 4 5; do # a proxy may answer "too many requests"; a later try goes through
  go mod download >&2 && break
  [ $try = 5 ] && { echo "build-critools.sh: downloading the modules failed" >&2; exit 1; }
  echo "download failed, trying again in ${try}0 s" >&2; sleep ${try}0
done
echo "building critest and crictl" >&2
export CGO_ENABLED=0
flags="-s -w -X $package/pkg/version.Version=$(go list -m -f '{{.Version}}' $package)"
go test -c -trimpath -ldflags "$flags" -o "$out/critest.test" $package/cmd/critest
go build -trimpath -ldflags "$flags" -o "$out/crictl" $package/cmd/crictl
go build -trimpath -ldflags "-s -w" -o "$out/ginkgo" github.com/onsi/ginkgo/v2/ginkgo
touch "$out/.complete"
echo "$out"
