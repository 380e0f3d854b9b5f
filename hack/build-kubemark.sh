#!/bin/bash
# Builds kubemark, whose hollow nodes test/scale compares ours with, from the module
# test/scale/kubemark.
# usage: build-kubemark.sh     prints its directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cached-module.sh kubemark test/scale/kubemark

release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
version=k8s.io/component-base/version
flags="-s -w -X $version.gitVersion=$release -X $version.gitMajor=1 -X $version.gitMinor=${release:3:2}"
echo "building kubemark" >&2
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out/" k8s.io/kubernetes/cmd/kubemark
complete
