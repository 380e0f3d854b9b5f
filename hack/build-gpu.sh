#!/bin/bash
# Builds NVIDIA's programs from a module of their own: the device plugin and the CDI hook from
# examples/gpu/tools, or the DRA driver from examples/gpu/dra, which needs another version of NVML's bindings.
# usage: build-gpu.sh tools|dra     prints their directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cached-module.sh "gpu-$1" "examples/gpu/$1"

echo "building NVIDIA's programs: $1" >&2
# Without what the header of NVML deprecates its bindings would warn 100 times.
export CGO_ENABLED=1 CGO_CFLAGS="-O2 -Wno-deprecated-declarations"
go build -trimpath -ldflags "-s -w" -o "$out/" tool >&2
complete
