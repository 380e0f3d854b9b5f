#!/bin/bash
# Builds the programs of the API of a node without a control plane: its API server, its DNS server and kubectl.
# usage: build-api.sh     prints their directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
# The packages of the agent that it imports, directly or not, are sources as well.
for try in 1 2 3 4 5; do # it may download modules
  shared=$(cd apiserver && "${GO:-go}" list -deps -f '{{with .Module}}{{if eq .Path "swiftlet"}}{{$.Dir}}{{end}}{{end}}' . ./dns) && break
  [ $try = 5 ] && { echo "${0##*/}: listing packages failed" >&2; exit 1; }
  sleep ${try}0
done
sources=$(find apiserver $shared -name '*.go' ! -name '*_test.go' | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-8)
. hack/cached-module.sh "api-$sources" apiserver

release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$release -X $package.gitMajor=1 -X $package.gitMinor=${release:3:2}"
done
build() { # NAME PACKAGE
  local began=$SECONDS
  echo "building $1" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out/$1" "$2"
  echo "built    $1 in $((SECONDS - began)) s" >&2
}
build swiftlet-apiserver .
build swiftlet-dns ./dns
build kubectl k8s.io/kubernetes/cmd/kubectl
complete
