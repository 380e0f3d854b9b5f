#!/bin/bash
# Builds metrics-server from the module test/metrics-server, for the test of kubectl top.
# usage: build-metrics-server.sh     prints the directory of it and its manifests on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cached-module.sh metrics-server test/metrics-server
package=sigs.k8s.io/metrics-server

echo "building metrics-server" >&2
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/metrics-server" $package/cmd/metrics-server
install -m 644 "$(go list -m -f '{{.Dir}}' $package)"/manifests/base/{rbac,apiservice}.yaml "$out"
complete
