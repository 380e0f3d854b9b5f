#!/bin/bash
# Runs a command with open-iscsi's programs in its PATH. They are unpacked to the cache and not
# installed, so that their daemon does not run on the host.
# usage: with-iscsi.sh COMMAND...
set -euo pipefail
tools=${XDG_CACHE_HOME:-$HOME/.cache}/swiftlet/open-iscsi
if [ ! -x "$tools/sbin/iscsid" ]; then
  fresh=$(mktemp -d) && trap 'rm -rf "$fresh"' EXIT
  for try in 1 2 3; do
    [ $try = 1 ] || apt-get update -qq >/dev/null || true # the package lists may be missing or stale
    (cd "$fresh" && rm -f ./*.deb && apt-get download -qq open-iscsi libopeniscsiusr libisns0 2>/dev/null) && break
    [ $try -lt 3 ] || { echo "with-iscsi: could not fetch open-iscsi" >&2; exit 1; }
  done
  for package in "$fresh"/*.deb; do dpkg-deb -x "$package" "$fresh/root"; done
  rm -rf "$tools" && mkdir -p "$(dirname "$tools")" && mv "$fresh/root" "$tools"
  rm -rf "$fresh" && trap - EXIT
fi
libraries=$(dirname "$(find "$tools/usr/lib" -name 'libisns.so.*' -print -quit)")
PATH=$tools/sbin:$tools/usr/sbin:$PATH LD_LIBRARY_PATH=$libraries exec "$@"
