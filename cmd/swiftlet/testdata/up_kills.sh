#!/bin/bash
# Kills the API server, swiftlet and containerd, KILLS times each, while clients write, on a machine of its own (see
# up_test.go). No acknowledged write is lost, and no process of a pod ends.
# usage: up_kills.sh SWIFTLET STATE KILLS
set -uo pipefail
swiftlet=$1 state=$2 kills=$3
out=$state/out
. testdata/functions.sh

export KUBECONFIG=$state/root/admin.kubeconfig
kubectl() { "$(dirname "$swiftlet")/api/kubectl" "$@"; }
apiserver() { pgrep -f "^[^ ]*/swiftlet-apiserver " | tr '\n' ' '; }
containerd() { pgrep -f "^[^ ]*/containerd --config " | tr '\n' ' '; }
processes() { pgrep -f '^/example serve' | sort | tr '\n' ' '; }
containers() { kubectl get pods -o 'jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}{"\n"}{end}'; }
ready() { kubectl wait --for=condition=Ready node --all --timeout=2s && kubectl wait --for=condition=Ready pods --all --timeout=2s; }
up() {
  "$swiftlet" up --api --manifests "$state/manifests" --root "$state/root" >>"$out" 2>>"$state/log" &
  up=$!
}
write() { # acknowledged objects, until the file stop exists
  for ((n = 0; ; n++)); do
    [ -e "$state/stop" ] && return
    kubectl create configmap "write-$1-$n" --from-literal=a=b >/dev/null 2>&1 && echo "configmap/write-$1-$n" >>"$state/acknowledged-$1"
  done
}

mkdir "$state/manifests"
: >"$out"
up
await "the API is ready" kubectl get --raw /readyz
for n in 1 2; do
  kubectl create -f - <<YAML || fail "create a pod"
{apiVersion: v1, kind: Pod, metadata: {name: web-$n}, spec: {containers: [{
  name: c, image: docker.io/swiftlet/example:1, args: [serve, ":900$n", /], readinessProbe: {periodSeconds: 1, httpGet: {port: 900$n}}}]}}
YAML
done
await "pods are ready" ready
before=$(containers) running=$(processes)
[ "$(wc -w <<<"$running")" = 2 ] || fail "processes of the pods: $running"

write 1 & writers=$!
write 2 & writers+=" $!"
for ((n = 1; n <= kills; n++)); do
  for victim in apiserver containerd swiftlet; do
    sleep "0.$RANDOM" # at any moment
    api=$(apiserver) runtime=$(containerd)
    case $victim in
    apiserver) kill -9 $api; await "kill $n of the API server: it is back" eval '[ -n "$(apiserver)" ] && [ "$(apiserver)" != "$api" ]' ;;
    containerd) kill -9 $runtime; await "kill $n of containerd: it is back" eval '[ -n "$(containerd)" ] && [ "$(containerd)" != "$runtime" ]' ;;
    swiftlet) kill -9 $up; wait $up 2>/dev/null; await "kill $n of swiftlet: the API server ends, too" eval '[ -z "$(apiserver)" ]'; up ;;
    esac
    await "  and the API" kubectl get --raw /readyz
    [ "$(processes)" = "$running" ] || fail "a pod ended after the kill of $victim: $(processes), were $running"
  done
done
touch "$state/stop"
wait $writers
await "node and pods are ready" ready
[ "$(containers)" = "$before" ] || fail "containers are"$'\n'"$(containers)"$'\n'"and were"$'\n'"$before"
[ "$(processes)" = "$running" ] || fail "processes are $(processes), and were $running"
kubectl get configmaps -o name | sort >"$state/stored"
lost=$(sort "$state"/acknowledged-* | comm -23 - "$state/stored")
[ -z "$lost" ] || fail "lost: $lost"
echo "ok: $((3 * kills)) kills, $(cat "$state"/acknowledged-* | wc -l) acknowledged writes, none lost"
kubectl run after --image=docker.io/swiftlet/example:1 -- serve :9003 / && kubectl wait --for=condition=Ready pod/after --timeout=30s || fail "a pod does not start after the kills"
kill -INT $up
wait $up || fail "stopping failed"
