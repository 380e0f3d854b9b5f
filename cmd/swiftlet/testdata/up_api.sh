#!/bin/bash
# What a new user does with `swiftlet up --api` and kubectl, on a machine of its own (see up_test.go).
# usage: up_api.sh SWIFTLET STATE MANIFESTS NAMESERVER
set -uo pipefail
swiftlet=$1 state=$2 manifests=$3 nameserver=$4
out=$state/out
. testdata/functions.sh

export KUBECONFIG=$state/root/admin.kubeconfig
kubectl() { "$(dirname "$swiftlet")/api/kubectl" "$@"; }
field() { kubectl get "$1" "$2" -o "jsonpath=$3"; } # KIND NAME PATH
is() { [ "$(field "$1" "$2" "$3" 2>/dev/null)" = "$4" ]; }
kubelet() { curl -s -o "$state/answer" -w '%{http_code}' --cacert "$state/root/pki/ca.crt" -H "Authorization: Bearer $1" https://127.0.0.1:10250/pods; }
apiserver() { pgrep -f "^[^ ]*/swiftlet-apiserver " | tr '\n' ' '; }
up() {
  : >"$out"
  "$swiftlet" up --api --manifests "$manifests" --root "$state/root" >"$out" 2>>"$state/log" &
  up=$!
}

. testdata/services.sh
outside
before=$(traces)
up
await "the output says how to use kubectl" grep -q "the API is ready after .*: export KUBECONFIG=$KUBECONFIG" "$out"
[ "$(stat -c %a "$KUBECONFIG")" = 600 ] || fail "others may read the kubeconfig"
await "the node is ready" is node "$(hostname)" '{.status.conditions[?(@.type=="Ready")].status}' True

await "a pod of the directory is ready" shows web 'Running ready 1/1 restarts 0'
await "another is completed" shows job 'Completed'
says 8080 "" "Hello from a pod" || fail "the host port does not lead to the pod"
await "hints are kubectl commands" grep -q 'kubectl logs -f -n default web' "$out"
bash -c "$(hint 'use kubectl'); $(hint 'look into a pod')" | grep -q '^Status: *Running' || fail "the hints do not work"
kubectl exec web -- /example primes 5 2>&1 | grep -q "2 primes below 5" || fail "kubectl exec"
kubectl logs web | grep -q "GET /" || fail "kubectl logs"
kubectl get events --field-selector involvedObject.name=web -o 'jsonpath={.items[*].reason}' | grep -q Started || fail "no event says that the container started"
kubectl run mine --image=docker.io/swiftlet/example:1 -- serve :9000 / && kubectl wait --for=condition=Ready pod/mine --timeout=30s || fail "kubectl run: $(kubectl describe pod mine)"

kubectl create deployment site --image=docker.io/swiftlet/example:1 -- /example serve :9001 / && kubectl rollout status deployment site --timeout=30s || fail "a Deployment: $(kubectl describe deployment,pods -l app=site)"
kubectl delete deployment site || fail "a Deployment is not deleted"
await "a Deployment's pods go with it" eval '[ -z "$(kubectl get pods -l app=site -o name)" ]'

. testdata/kubectl.sh

sed -i 's/Hello from a pod/Hello again/' "$manifests/web.yaml"
await "a changed ConfigMap of the directory reaches the file" says 8080 "" "Hello again"
uid=$(field pod web '{.metadata.uid}')
sed -i 's/serve, ":8080"/serve, ":8082"/; s/containerPort: 8080/containerPort: 8082/' "$manifests/web.yaml"
await "a changed pod is replaced" eval '! is pod web "{.metadata.uid}" "$uid" && kubectl get pod web | grep -q "1/1 .*Running"'
cat >"$manifests/bad.yaml" <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  containers:
  - name: c
    imagee: x
---
apiVersion: example.com/v1
kind: Nonsense
metadata: {name: none}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: good}
EOF
await "an unknown field is named with file and line" grep -q 'not applied: .*/bad.yaml:7: Pod default/bad: .*\.imagee: field not declared in schema' "$out"
await "and a kind that is not served" grep -q 'not applied: .*/bad.yaml:10: Nonsense none: kind Nonsense of example.com/v1 is not served' "$out"
await "in the log, too" grep -q '"manifests: not applied" file=.*/bad.yaml" line=7' "$state/log"
await "the rest of the file is applied" kubectl get configmap good
rm "$manifests/bad.yaml"
await "and removed with the file" eval '! kubectl get configmap good'
await "the problem is solved" grep -q 'solved: .*/bad.yaml:7' "$out"
rm "$manifests/init-sidecar.yaml"
await "a removed file's pod goes" grep -q 'gone: default/init-sidecar' "$out"

await "the kubelet asks the API server who may use it" eval '[ "$(kubelet "$(kubectl create token default)")" = 403 ]'
[ "$(kubelet invalid)" = 401 ] || fail "the kubelet accepts an invalid token: $(cat "$state/answer")"

in_pod() { nsenter -n -t "$(pgrep -f -n 'serve :9000')" "$@"; } # the network of pod mine
for api in https://10.88.0.1:6443 "https://$(field service kubernetes '{.spec.clusterIP}')"; do
  [ "$(in_pod curl -s -m 5 --cacert "$state/root/pki/ca.crt" -H "Authorization: Bearer $(kubectl create token default)" "$api/version" -o /dev/null -w '%{http_code}')" = 200 ] || fail "a pod does not reach $api"
done
echo "ok: a pod reaches the API"

services

bridge_netfilter_off
first=$(apiserver)
kill -9 $first || fail "the API server was not killed"
await "the API server is back" eval '[ "$(apiserver)" != "$first" ] && kubectl get --raw /readyz'
kubectl get pod web | grep -qE 'web +1/1 +Running +0' || fail "the pod did not survive the API server: $(kubectl get pod web)"
await "pods reach Services without bridge netfilter" mine get http://site/hostname
[[ "$(kubectl logs -l app=site --tail=1)" == 10.88.0.1:* ]] || fail "the proxy does not masquerade: $(kubectl logs -l app=site --tail=1)"
kubectl delete deployment site --wait=false || fail "delete"
rm "$manifests/job.yaml"
await "files are followed again" eval '! kubectl get pod job'

kill -9 $up; wait $up 2>/dev/null
await "the API server ends with swiftlet" eval '[ -z "$(apiserver)" ]'
await "and DNS" eval '! dns'
says 8080 "" "Hello" || fail "the pod did not survive swiftlet"
up
await "the next one takes over" shows web 'Running ready 1/1 restarts 0'
uid=$(field pod mine '{.metadata.uid}')

kill -INT $up
wait $up || fail "stopping failed"
after=$(traces)
[ "$before" = "$after" ] || fail "left behind: $(diff <(echo "$before") <(echo "$after"))"
echo "ok: nothing is left behind"

"$swiftlet" up -d --keep --api --manifests "$manifests" --root "$state/root" >"$state/detached" 2>&1 || fail "up -d: $(cat "$state/detached")"
grep -q "export KUBECONFIG=$KUBECONFIG" "$state/detached" || fail "up -d says: $(cat "$state/detached")"
await "pods of the store run again" eval '"$swiftlet" kubectl get pod mine | grep -q "1/1 .*Running"'
is pod mine '{.metadata.uid}' "$uid" || fail "it is another pod"
await "volumes keep their data" stored treasure
kubectl delete statefulset db && kubectl delete pvc data-db-0 || fail "a claim is not deleted"
await "a volume goes with its claim" eval '[ -z "$(ls "$state/root/volumes")" ]'
"$swiftlet" up -d --api --manifests "$manifests" --root "$state/root" >"$state/second" 2>&1 && fail "a second instance started"
grep -q "already up" "$state/second" || fail "the second instance says: $(cat "$state/second")"

"$swiftlet" backup --root "$state/root" "$state/backup" >"$state/saved" || fail "backup: $(cat "$state/saved")"
grep -q "wrote $state/backup: .* objects at revision" "$state/saved" || fail "backup says: $(cat "$state/saved")"
kubectl delete pod mine && kubectl run later --image=docker.io/swiftlet/example:1 -- serve :9002 / && kubectl wait --for=condition=Ready pod/later --timeout=30s || fail "changes after the backup"
"$swiftlet" restore --root "$state/root" "$state/backup" >"$state/refused" 2>&1 && fail "restored under a node that runs"
grep -q "stop the node first, with .swiftlet down." "$state/refused" || fail "restore says: $(cat "$state/refused")"
"$swiftlet" down --root "$state/root" || fail "down before restore"
"$swiftlet" restore --root "$state/root" "$state/backup" || fail "restore"
"$swiftlet" up -d --api --manifests "$manifests" --root "$state/root" >"$state/detached" 2>&1 || fail "up after restore: $(cat "$state/detached")"
await "a pod of the backup runs again" eval 'is pod mine "{.metadata.uid}" "$uid" && kubectl get pod mine | grep -q "1/1 .*Running"'
await "the restored node is ready" is node "$(hostname)" '{.status.conditions[?(@.type=="Ready")].status}' True
kubectl get pod later 2>/dev/null && fail "a pod that the backup does not have is there"
pgrep -f "serve :9002" && fail "and it runs"
"$swiftlet" down --root "$state/root" || fail "down"
after=$(traces)
[ "$before" = "$after" ] || fail "down left behind: $(diff <(echo "$before") <(echo "$after"))"
"$swiftlet" down --root "$state/root" | grep -q "nothing is up" || fail "down again"
echo "ok: down stops the instance in the background, and what it keeps"
