#!/bin/bash
# Builds the reference kubelet of an earlier release from the module test/reference/VERSION.
# usage: build-old-kubelet.sh VERSION     prints its directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
[ -e "test/reference/$version/go.mod" ] || { echo "build-old-kubelet.sh: no module test/reference/$version" >&2; exit 2; }
. hack/cached-module.sh "kubelet-$version" "test/reference/$version"

echo "building kubelet $version" >&2
minor=${version#v1.}
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
done
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out/kubelet" k8s.io/kubernetes/cmd/kubelet
complete
