#!/bin/bash
# Builds what the conformance run needs: upstream's e2e.test and ginkgo from the module
# test/conformance/suite, and the programs of its images: agnhost, nnp, consumer, busybox, nginx. They are
# kept outside the checkout, in a directory named by the hash of what decides them.
# usage: build-conformance.sh     prints the directory on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SWIFTLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swiftlet}
say() { echo "$*" >&2; }
module=test/conformance/suite

# Debian's busybox drops environment names that are not shell names; one with upstream's
# own settings keeps them, as the suite's image does.
busybox=busybox_1.37.0.orig.tar.bz2
busybox_sum=3311dff32e746499f4df0d5df04d7eb396382d7e108bb9250e7b519b837043a4

key=$(cat "$module/go.mod" "$module/go.sum" hack/build-conformance.sh <(go version) | sha256sum | cut -c1-16)
out=$cache/conformance-$key
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9   # two clones at once share one build
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# retry CMD…: a mirror or proxy may refuse for a while; a later try goes through.
retry() {
  local try
  for try in 1 2 3 4; do
    "$@" && return
    say "build-conformance.sh: $1 failed, trying again in ${try}0 s"; sleep ${try}0
  done
  "$@"
}

# timed NAME CMD…
timed() {
  local name=$1 began=$SECONDS; shift
  say "building $name"
  ( "$@" ) >"$work/log" 2>&1 & # not behind "||", where the shell would go on after an error
  wait $! || { tail -n 30 "$work/log" >&2; say "build-conformance.sh: building $name failed"; exit 1; }
  say "built    $name in $((SECONDS - began)) s"
}

# mirror prints the address of the Debian archive that this machine uses.
mirror() {
  local address
  address=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
  [ -n "$address" ] || { say "build-conformance.sh: apt knows no Debian archive: run apt-get update"; return 1; }
  echo "${address%/}"
}

build_busybox() {
  local from
  from=$(mirror)
  retry curl -fsSL -o "$work/$busybox" "$from/pool/main/b/busybox/$busybox"
  echo "$busybox_sum  $work/$busybox" | sha256sum -c --quiet
  tar -C "$work" -xf "$work/$busybox"
  cd "$work/busybox-1.37.0"
  make defconfig
  # tc does not compile with newer kernel headers, and no test calls it.
  sed -i -e 's/^# CONFIG_STATIC is not set/CONFIG_STATIC=y/' -e 's/^CONFIG_TC=y/# CONFIG_TC is not set/' .config
  { yes '' || true; } | make oldconfig
  make -j"$(nproc)" busybox
  install -m 755 busybox "$out/busybox"
}

# The package is unpacked, not installed: no server starts on this machine.
unpack_nginx() {
  cd "$work"
  retry apt-get download nginx || { apt-get update -qq; apt-get download nginx; }
  dpkg -x nginx_*.deb nginx
  install -m 755 nginx/usr/sbin/nginx "$out/nginx"
}

go_programs() {
  cd "$module"
  retry go mod download
  local strip="-s -w"
  export CGO_ENABLED=0
  timed agnhost go build -trimpath -ldflags "$strip" -o "$out/agnhost" k8s.io/kubernetes/test/images/agnhost
  timed nnp go build -trimpath -ldflags "$strip" -o "$out/nnp" k8s.io/kubernetes/test/images/nonewprivs
  timed sampledeviceplugin go build -trimpath -ldflags "$strip" -o "$out/sampledeviceplugin" k8s.io/kubernetes/test/images/sample-device-plugin
  timed consumer go build -trimpath -ldflags "$strip" -o "$out/consumer" k8s.io/kubernetes/test/images/resource-consumer
  timed consume-cpu go build -trimpath -ldflags "$strip" -o "$out/consume-cpu" k8s.io/kubernetes/test/images/resource-consumer/consume-cpu
  timed ginkgo go build -trimpath -ldflags "$strip" -o "$out/ginkgo" github.com/onsi/ginkgo/v2/ginkgo
  local release
  release=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  local version=k8s.io/component-base/version minor=${release#v1.}
  timed "e2e.test (a quarter of an hour the first time)" go test -c -trimpath \
    -ldflags "$strip -X $version.gitVersion=$release -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}" -o "$out/e2e.test" k8s.io/kubernetes/test/e2e
  echo "$release" > "$out/release"
  # What the images hold besides programs.
  local images
  images=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)/test/images
  mkdir -p "$out/files"
  install -m 644 "$images/agnhost/porter/localhost.crt" "$images/agnhost/porter/localhost.key" \
    "$images"/{kitten,nautilus}/html/*.jpg "$out/files"
  local pet
  for pet in kitten nautilus; do install -m 644 "$images/$pet/html/data.json" "$out/files/$pet.json"; done
}

timed busybox build_busybox
timed nginx unpack_nginx
( go_programs )
touch "$out/.complete"
echo "$out"
