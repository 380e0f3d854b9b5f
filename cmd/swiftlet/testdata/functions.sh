# Functions of the tests of `swiftlet up`. Sourced with $state, the directory of the test, and $out, the output of
# `swiftlet up`.
fail() {
  echo "FAIL: $*"
  echo "--- output"; cat "$out"
  echo "--- log"; tail -n 100 "$state/log" | cut -c1-400
  exit 1
}
await() { # WHAT COMMAND…: becomes true within 30 s
  local what=$1 end=$((SECONDS + 30)) last; shift
  until last=$("$@" 2>&1); do
    [ $SECONDS -lt $end ] || fail "$what: ${last:0:500}"
    sleep 0.1
  done
  echo "ok: $what"
}
shows() { # NAME PATTERN, of a pod of the API or a static pod
  tac "$out" | grep -m1 -E "default/$1(-[^ ]+)? " | grep -qE "$2"
}
page() { curl -sf -m 2 "http://127.0.0.1:$1/${2:-}"; }
says() { page "$1" "$2" | grep -q "$3"; }
hint() { sed -n "s/^  $1  *//p" "$out" | head -n 1; }
traces() {
  cut -d' ' -f5 /proc/self/mountinfo | sort
  ls /sys/class/net
  nft list ruleset
  find /sys/fs/cgroup -type d | sort
  lsns -t net -n -o NS | sort -u
  ls /run /var/lib/cni 2>/dev/null
  cat /proc/sys/net/ipv4/ip_forward
  for p in /proc/[0-9]*; do readlink "$p/exe"; done | grep -E 'containerd|/pause|/example|swiftlet'
  true
}
