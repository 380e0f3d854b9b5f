#!/bin/bash
# Builds the CSI project's csi-provisioner and csi-resizer from the module
# test/conformance/sidecars, for the images of upstream's tests of CSI.
# usage: build-csi-sidecars.sh     prints their directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cached-module.sh csi-sidecars test/conformance/sidecars

echo "building csi-provisioner and csi-resizer (minutes the first time)" >&2
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/" \
  github.com/kubernetes-csi/external-provisioner/v5/cmd/csi-provisioner \
  github.com/kubernetes-csi/external-resizer/cmd/csi-resizer
complete
