#!/bin/bash
# Builds the API server for a node without a control plane, with the version of Kubernetes that it is made from.
# usage: build-apiserver.sh FILE
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../apiserver"
for try in 1 2 3 4 5; do # a proxy may answer "too many requests"; a later try goes through
  go mod download >&2 && break
  [ $try = 5 ] && { echo "build-apiserver.sh: downloading the modules failed" >&2; exit 1; }
  echo "download failed, trying again in ${try}0 s" >&2; sleep ${try}0
done
release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$release -X $package.gitMajor=1 -X $package.gitMinor=${release:3:2}"
done
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out" .
