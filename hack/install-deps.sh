#!/bin/bash
# Installs the missing Debian packages that the build and the tests need, and those that are named. If
# none is missing, it prints nothing and needs no network.
# usage: install-deps.sh [PACKAGE…]
set -euo pipefail
say() { echo "install-deps: $*" >&2; }

packages=(
  bind9-dnsutils # dig, for the conformance images
  busybox-static # for the test image
  dbus # for tests of the systemd cgroup driver
  dbus-daemon # for tests of graceful node shutdown
  bzip2 # for busybox's sources, in the conformance images
  ca-certificates
  curl # for the commands in the examples
  e2fsprogs # for the CSI driver of the tests
  iproute2 # for bridges and veth pairs of test nodes
  iptables # for the agent's chains and the CNI plugins
  kmod
  libseccomp-dev # runc is linked with it
  mount
  netcat-openbsd # for the conformance images
  nftables
  pkg-config
  procps
  systemd # for tests of the systemd cgroup driver
  user-mode-linux # for tests on cgroup v2
  util-linux # unshare, nsenter, flock
  xfsprogs # for tests of project quotas
  "$@"
)

missing=()
for p in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$p" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$p")
done
[ ${#missing[@]} = 0 ] && exit 0
[ "$(id -u)" = 0 ] || { say "needs root to install: ${missing[*]}"; exit 1; }

say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }
for try in 1 2 3 4; do
  # The package lists may be missing or stale: try them first, then update them.
  if [ $try -gt 1 ]; then
    say "fetching package lists"
    apt-get update -qq >/dev/null || true
  fi
  install && { say "done"; exit 0; }
  say "attempt $try failed"
  sleep $((try * 5))
done
say "could not install: ${missing[*]}"
exit 1
