#!/bin/bash
# Builds critest, crictl and ginkgo from the module test/critools/suite.
# usage: build-critools.sh     prints their directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cached-module.sh critools test/critools/suite
package=sigs.k8s.io/cri-tools

echo "building critest and crictl" >&2
export CGO_ENABLED=0
flags="-s -w -X $package/pkg/version.Version=$(go list -m -f '{{.Version}}' $package)"
go test -c -trimpath -ldflags "$flags" -o "$out/critest.test" $package/cmd/critest
go build -trimpath -ldflags "$flags" -o "$out/crictl" $package/cmd/crictl
go build -trimpath -ldflags "-s -w" -o "$out/ginkgo" github.com/onsi/ginkgo/v2/ginkgo
complete
