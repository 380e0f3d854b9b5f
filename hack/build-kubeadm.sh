#!/bin/bash
# Builds kubeadm, and the addons that it deploys: kube-proxy and CoreDNS, from the module
# test/kubeadm/programs.
# usage: build-kubeadm.sh     prints their directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cached-module.sh kubeadm test/kubeadm/programs

release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
version=k8s.io/component-base/version
flags="-s -w -X $version.gitVersion=$release -X $version.gitMajor=1 -X $version.gitMinor=${release:3:2}"
for package in k8s.io/kubernetes/cmd/{kubeadm,kube-proxy} ./coredns; do
  echo "building ${package##*/}" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out/" $package
done
complete
