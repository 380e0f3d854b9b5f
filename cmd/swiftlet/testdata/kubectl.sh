# Verbs of kubectl that need a kubelet, with the pod mine. Those that do not are in the tests of apiserver.
# Sourced by up_api.sh.
verb() { # NAME PATTERN COMMAND: its output matches
  local got
  got=$(eval "$3" 2>&1)
  grep -qE "$2" <<<"$got" || fail "$1: $3: $got"
  echo "ok: kubectl $1"
}
follows() { # NAME PATTERN INPUT COMMAND…: an endless command, which is ended when its output matches
  local name=$1 pattern=$2 input=$3 pid; shift 3
  mkfifo "$state/input" && exec 9<>"$state/input" || fail "$name: cannot make its input"
  echo "$input" >&9
  "$@" <"$state/input" >"$state/followed" 2>&1 9>&- & pid=$!
  await "kubectl $name" grep -qE "$pattern" "$state/followed"
  kill $pid; wait $pid 2>/dev/null
  exec 9>&-; rm "$state/input"
}
logged() { # TEXT, OPTIONS of kubectl logs: prints the log when it has the text
  local log
  for n in {1..150}; do
    log=$(kubectl logs "${@:2}" 2>&1)
    grep -q "$1" <<<"$log" && break
    sleep 0.2
  done
  echo "$log"
}
image=docker.io/swiftlet/example:1
cli=$(dirname "$swiftlet")/api/kubectl

# The image has no shell: pods borrow that of the host.
kubectl apply -f - <<'POD' || fail "the pods for kubectl are not created"
apiVersion: v1
kind: Pod
metadata: {name: tools}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: sh
    image: docker.io/swiftlet/example:1
    command: [/bin/sh, -c, "while read line; do echo got $line; done; sleep 100000"]
    stdin: true
    volumeMounts:
    - {name: bin, mountPath: /bin, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
    - {name: work, mountPath: /work}
  volumes:
  - {name: bin, hostPath: {path: /usr/bin}}
  - {name: lib, hostPath: {path: /usr/lib}}
  - {name: lib64, hostPath: {path: /usr/lib64}}
  - {name: work, emptyDir: {}}
---
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: "docker.io/swiftlet/example:1", args: [primes, none]}]
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: "docker.io/swiftlet/example:1", args: [primes, "5"], resources: {requests: {cpu: "1000"}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: burn}
spec:
  selector: {matchLabels: {app: burn}}
  template:
    metadata: {labels: {app: burn}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: c
        image: docker.io/swiftlet/example:1
        command: [/bin/sh, -c, "while :; do :; done"]
        resources: {requests: {cpu: 10m}, limits: {cpu: 300m}}
        volumeMounts:
        - {name: bin, mountPath: /bin, readOnly: true}
        - {name: lib, mountPath: /lib, readOnly: true}
        - {name: lib64, mountPath: /lib64, readOnly: true}
      volumes:
      - {name: bin, hostPath: {path: /usr/bin}}
      - {name: lib, hostPath: {path: /usr/lib}}
      - {name: lib64, hostPath: {path: /usr/lib64}}
POD
kubectl autoscale deployment burn --max=2 --cpu=50% || fail "kubectl autoscale"
kubectl wait --for=condition=Ready pod/tools --timeout=30s && kubectl rollout status deployment/burn --timeout=30s || fail "the pods for kubectl: $(kubectl describe pod tools)"

verb "describe: a pod that does not fit" 'FailedScheduling.* 0/1 nodes are available: 1 Insufficient cpu' 'kubectl wait --for=condition=PodScheduled=False pod/huge --timeout=10s; kubectl describe pod huge'
verb "version" "Server Version: v1\.[0-9]+\.[0-9]" 'kubectl version'
verb "get -o wide" "mine +1/1 +Running .* $(hostname) " 'kubectl get pods -o wide'
follows "get -w" mine "" "$cli" get pods -w
verb "describe node" 'Allocated resources' 'kubectl describe node'
verb "get --raw of the kubelet" '^ok$' "kubectl get --raw /api/v1/nodes/$(hostname):10250/proxy/healthz"
# It waits for its input: kubectl does not show what a container writes before it is attached.
once='{"spec": {"containers": [{"name": "once", "image": "'$image'", "stdin": true, "stdinOnce": true, "command": ["/bin/sh", "-c", "read line; echo got $line"],
  "volumeMounts": [{"name": "bin", "mountPath": "/bin"}, {"name": "lib", "mountPath": "/lib"}, {"name": "lib64", "mountPath": "/lib64"}]}],
  "volumes": [{"name": "bin", "hostPath": {"path": "/usr/bin"}}, {"name": "lib", "hostPath": {"path": "/usr/lib"}}, {"name": "lib64", "hostPath": {"path": "/usr/lib64"}}]}}'
verb "run --rm -i" 'got hello' 'echo hello | kubectl run once --rm -i --restart=Never --image=$image --overrides="$once"'
verb "logs -l --since" 'mine: serving' 'kubectl logs -l run=mine --since=1h --tail=-1'
follows "logs -f" serving "" "$cli" logs -f mine
verb "exec" '^/' 'kubectl exec tools -- /bin/pwd'
verb "exec -it" '/dev/pts/' "script -qec '$cli exec -it tools -- /bin/tty' /dev/null"
follows "attach" 'got hello' hello "$cli" attach -i tools
echo data >"$state/sent"
verb "cp" '^data$' "kubectl cp $state/sent tools:/work/file && kubectl cp tools:/work/file $state/received && cat $state/received"
kubectl port-forward pod/mine 19000:9000 >/dev/null & forward=$!
await "kubectl port-forward" page 19000 healthz
kill $forward; wait $forward 2>/dev/null
verb "debug" 'primes below 20' "kubectl debug mine --image=$image -c probe -- /example primes 20; logged 'primes below' mine -c probe"
verb "debug --copy-to" 'primes below 30' "kubectl debug mine --copy-to=copy --container=mine -- /example primes 30; logged 'primes below' copy; kubectl delete pod copy --force"
verb "debug node" 'primes below 40' "kubectl debug node/$(hostname) --image=$image -- /example primes 40; p=\$(kubectl get pods -o name | grep node-debugger); logged 'primes below' \$p; kubectl delete \$p --force"
verb "top node" "^$(hostname) +[1-9][0-9]*m +[0-9]+% +[0-9]+Mi" 'kubectl top node'
verb "top pod" 'burn-[^ ]+ +[1-9][0-9]+m +[0-9]+Mi' 'kubectl top pod'
verb "top pod --containers" 'burn-[^ ]+ +c +[1-9][0-9]+m' 'kubectl top pod -A --containers -l app=burn'
verb "top pod -l" '^1$' 'kubectl top pod --no-headers -l run=mine | wc -l'
verb "get podmetrics" 'burn' 'kubectl get podmetrics'
verb "explain metrics" 'memory usage' 'kubectl explain podmetrics.containers.usage'
await "kubectl logs --previous" kubectl logs --previous crash
verb "events" 'BackOff|Started' 'kubectl events --for pod/crash'
verb "drain" 'drained' "kubectl drain $(hostname) --force --pod-selector=app=burn --timeout=20s"
verb "uncordon" 'uncordoned' "kubectl uncordon $(hostname)"
await "a HorizontalPodAutoscaler scales up" is deployment burn '{.spec.replicas}' 2
verb "delete --force" 'tools.*force deleted' 'kubectl delete hpa,deployment burn; kubectl delete pod tools crash huge --force --grace-period=0'

kubectl apply -f - <<'SET' || fail "a StatefulSet is not created"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "docker.io/swiftlet/example:1", args: [serve, ":9002", /data], volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
SET
stored() { [ "$(kubectl get --raw /api/v1/namespaces/default/pods/db-0:9002/proxy/kept)" = "$1" ]; }
await "a StatefulSet with a claim" kubectl rollout status statefulset/db --timeout=30s
kubectl exec db-0 -- /example write /data/kept treasure || fail "the volume cannot be written: $(kubectl describe pod,pvc,pv)"
kubectl delete pod db-0
await "the data is there for the next pod" stored treasure
