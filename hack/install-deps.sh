#!/bin/bash
# Installs the Debian packages that the build and the tests call, where they are missing.
# Says nothing and needs no network when everything is there.
set -euo pipefail
say() { echo "install-deps: $*" >&2; }

packages=(
  busybox-static # the contents of the test image
  dbus # the bus that systemd serves on the machine of the tests of its cgroup driver
  dbus-daemon # the bus of the tests of graceful shutdown
  bzip2 # busybox's sources, for the images of the conformance run
  ca-certificates
  curl # what the examples say to try
  e2fsprogs # file systems of the CSI driver for tests
  iproute2 # bridges and veth pairs of the test nodes
  iptables # the agent's own chains, and the CNI plugins
  kmod
  libseccomp-dev # runc is linked with it
  mount
  netcat-openbsd # a tool of the images of the conformance run
  nftables
  pkg-config
  procps
  systemd # the first process there, for the tests of its cgroup driver
  user-mode-linux # the machine with cgroup v2
  util-linux # unshare, nsenter, flock
  xfsprogs # file systems with project quotas, for tests
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
  # The lists of a fresh image are absent or stale: try what is there, then fetch them.
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
