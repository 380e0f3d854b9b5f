#!/bin/bash
# Runs a command that says on standard error what it builds ("building NAME", then "built NAME in N s"), and adds how
# far it is: which of how many, how long that one usually takes, and every few seconds how long it has taken. Usual times
# are those of a cold build on two cores; a warm one needs a tenth of it.
# usage: progress.sh [-n NAME] COMMAND…     with NAME, the command builds that alone and says nothing
set -uo pipefail
usual() { # NAME: seconds
  case $1 in
  swiftlet-apiserver) echo 240 ;; swiftlet-dns) echo 40 ;; kubectl) echo 40 ;; bin/swiftlet) echo 90 ;; cri-docker) echo 60 ;;
  containerd) echo 55 ;; ctr) echo 5 ;; runc) echo 10 ;;
  etcd) echo 30 ;; kube-apiserver) echo 200 ;; kube-controller-manager) echo 100 ;; kube-scheduler) echo 15 ;; kubelet) echo 30 ;; metrics-server) echo 60 ;;
  esac
}
names() { # of the programs that a command builds, if it builds all of them
  case "$*" in
  *"build-tools.sh bundle") echo containerd containerd-shim-runc-v2 ctr cni/host-local cni/bridge cni/loopback cni/portmap runc ;;
  *"build-tools.sh reference") echo etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet ;;
  *build-api.sh) echo swiftlet-apiserver swiftlet-dns kubectl ;;
  *build-cri-docker.sh) echo cri-docker ;;
  esac
}
duration() { if (($1 < 90)); then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi; }

only=""
[ "$1" != -n ] || { only=$2; shift 2; }
read -ra all < <([ -z "$only" ] && names "$@" || echo "$only")
total() {
  local sum=0 name
  for name in "${all[@]}"; do sum=$((sum + $(usual "$name") + 0)); done
  echo $sum
}
follow() {
  local n=0 name=$only began=$SECONDS line
  while true; do
    if IFS= read -r -t "${PROGRESS_INTERVAL:-15}" line; then
      case $line in
      "building "*)
        name=${line#building } began=$SECONDS n=$((n + 1))
        line="building $name, $n of ${#all[@]}"
        [ -z "$(usual "$name")" ] || line+=", usually $(duration "$(usual "$name")") if nothing is cached"
        ((n == 1 && ${#all[@]} > 1)) && line+="; about $(duration "$(total)") in all"
        ;;
      "built "*) name="" ;;
      esac
      echo "$line" >&2
    elif (($? > 128)); then # no line for a while
      [ -z "$name" ] || echo "building $name: $((SECONDS - began)) s so far$(u=$(usual "$name"); [ -z "$u" ] || echo ", usually $(duration "$u")")" >&2
    else
      return
    fi
  done
}
exec 3>&1
"$@" 2>&1 >&3 | follow
exit "${PIPESTATUS[0]}"
