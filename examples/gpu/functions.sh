# Functions of run.sh. Sourced with $work, its directory, and $root, $manifests and $out in it.
step() { echo; echo "== $*"; }
fail() {
  echo "FAIL: $*"
  for file in "$out" "$work/log" "$work/plugin.log" "$root"/log/apiserver.log "$root"/log/pods/*/*/*.log; do
    [ -s "$file" ] && { echo "--- $file"; tail -n 15 "$file" | cut -c1-500; }
  done
  exit 1
}
await() { # WHAT COMMAND…: becomes true within 60 s
  local what=$1 end=$((SECONDS + 60)) last; shift
  until last=$("$@" 2>&1); do
    [ $SECONDS -lt $end ] || fail "$what: ${last:0:1000}"
    sleep 0.2
  done
  echo "ok: $what"
}
run_up() { # FLAGS…
  "$swiftlet" up --no-table --color never --node-name gpu-node --manifests "$manifests" --root "$root" \
    --images bin/images,bin/gpu-images "$@" >>"$out" 2>>"$work/log" &
  up=$!
  await "swiftlet up${*:+ $*} runs" eval "kill -0 $up && test -S $root/kubelet/device-plugins/kubelet.sock"
}
down() {
  step "swiftlet down"
  rm -f "$manifests"/*
  "$swiftlet" down --root "$root" || fail "swiftlet down"
  wait $up || fail "swiftlet up ended with $?"
  up=
}
kubectl() { KUBECONFIG=$root/admin.kubeconfig "$swiftlet" kubectl "$@"; }

manifest() { # FILE NAME SED…: writes it into the directory of manifests, changed by sed
  local file=$1 name=$2; shift 2
  sed "$@" "$file" >"$work/$name" && mv "$work/$name" "$manifests/$name"
}
saxpy() { # NAME: a pod that computes on all GPUs' devices
  manifest $here/manifests/saxpy.yaml "$1.yaml" -e "s/^  name: saxpy$/  name: $1/" -e "s,nvidia.com/gpu: 1,nvidia.com/gpu: $count,"
}
logs() { # NAME: what the containers of a pod have written
  sed 's/^[^ ]* [^ ]* [^ ]* //' "$root"/log/pods/default_"$1"[-_]*/*/*.log
}
computes() { logs "$1" | grep -q 'results are right'; }
gone() { ! "$swiftlet" why "$1" --root "$root" >/dev/null 2>&1; }
why() { "$swiftlet" why "$1" --root "$root" "${@:2}" | sed -n 1p; }
says() { why "$1" "${@:3}" | grep -E "$2"; } # NAME REGEXP FLAGS OF WHY…
show() { sed 's/^/    /'; }
show_why() { echo "    \$ swiftlet why $1"; why "$@" | show; }
computed() { # NAME
  await "pod $1 computes" computes "$1"
  logs "$1" | show
}

traces() {
  cut -d' ' -f5 /proc/self/mountinfo | sort
  ls /sys/class/net
  nft list ruleset 2>/dev/null || iptables-save | grep -v '^#'
  find /sys/fs/cgroup -type d | sort
  ls /run /var/lib/cni /var/run/cdi 2>/dev/null
  ls -d /var/lib/kubelet /var/lib/kubelet/device-plugins 2>/dev/null
  for p in /proc/[0-9]*; do readlink "$p/exe"; done | grep -E 'containerd|/pause|/saxpy|/swiftlet|nvidia-device-plugin|gpu-kubelet-plugin'
  true
}
begin_traces() { traces_before=$(traces); }
end_traces() {
  local after; after=$(traces)
  [ "$traces_before" = "$after" ] || { echo "FAIL: left behind: $(diff <(echo "$traces_before") <(echo "$after"))"; exit 1; }
  echo "ok: nothing is left behind"
}
clean() {
  trap - EXIT
  [ -z "$plugin" ] || kill "$plugin" 2>/dev/null
  [ -z "$up" ] || { "$swiftlet" down --root "$root" >/dev/null 2>&1; kill "$up" 2>/dev/null; }
  wait
  release_driver
  # NVIDIA's programs leave their CDI specifications.
  [ "$had_cdi" ] || rm -rf /var/run/cdi
  [ "$had_kubelet" ] || rmdir /var/lib/kubelet/device-plugins /var/lib/kubelet 2>/dev/null
  rm -rf --one-file-system "$work"
}
