#!/bin/bash
# Builds the programs named by the "tool" lines of a Go module that keeps them out of
# the product: bundle (containerd, runc, CNI plugins) or test/reference (control plane,
# reference kubelet). Binaries are kept outside the checkout, in a directory named by
# the hash of what decides them, so that a fresh clone on the same machine is warm.
# usage: build-tools.sh bundle|reference     prints the directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SWIFTLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swiftlet}
say() { echo "$*" >&2; }

kind=$1
case $kind in
bundle) dir=bundle ;;
reference) dir=test/reference ;;
*) say "build-tools.sh: unknown set $kind"; exit 2 ;;
esac

key=$(cat "$dir/go.mod" "$dir/go.sum" hack/build-tools.sh <(go version) | sha256sum | cut -c1-16)
out=$cache/$kind-$key
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9   # two clones at once share one build
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }

cd "$dir"
for try in 1 2 3 4 5; do # a proxy may answer "too many requests"; a later try goes through
  go mod download >&2 && break
  [ $try = 5 ] && { say "build-tools.sh: downloading the modules of $dir failed"; exit 1; }
  say "download of $dir's modules failed, trying again in ${try}0 s"; sleep ${try}0
done

# build NAME PACKAGE [go build flags…]
build() {
  local name=$1 package=$2; shift 2
  local began=$SECONDS
  say "building $name"
  go build -trimpath -o "$out/$name" "$@" "$package"
  say "built    $name in $((SECONDS - began)) s"
}
version() { go list -m -f '{{.Version}}' "$1"; }

case $kind in
bundle)
  containerd=github.com/containerd/containerd/v2
  strip="-s -w -X $containerd/version.Version=$(version $containerd) -X $containerd/version.Package=$containerd"
  export CGO_ENABLED=0
  build containerd $containerd/cmd/containerd -ldflags "$strip" -tags no_btrfs,no_devmapper,no_zfs
  build containerd-shim-runc-v2 $containerd/cmd/containerd-shim-runc-v2 -ldflags "$strip"
  build ctr $containerd/cmd/ctr -ldflags "$strip"
  plugins=github.com/containernetworking/plugins/plugins
  for p in ipam/host-local main/bridge main/loopback meta/portmap; do
    build "cni/$(basename $p)" $plugins/$p -ldflags "-s -w -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=$(version github.com/containernetworking/plugins)"
  done
  CGO_ENABLED=1 build runc github.com/opencontainers/runc -tags seccomp -ldflags "-s -w -extldflags -static"
  ;;
reference)
  release=$(version k8s.io/kubernetes)
  flags="-s -w -X k8s.io/component-base/version.gitVersion=$release -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${release:3:2}"
  flags="$flags ${flags//component-base/client-go/pkg}"
  flags=${flags//client-go\/pkg\/version/client-go/pkg/version}
  export CGO_ENABLED=0
  build etcd go.etcd.io/etcd/server/v3 -ldflags "-s -w"
  for c in kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet; do
    build $c k8s.io/kubernetes/cmd/$c -ldflags "$flags"
  done
  ;;
esac
touch "$out/.complete"
echo "$out"
