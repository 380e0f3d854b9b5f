#!/bin/bash
# What a new user does with `swiftlet up`, on a machine of its own (see up_test.go).
# usage: up.sh SWIFTLET STATE MANIFESTS DEVICEPLUGIN
set -uo pipefail
swiftlet=$1 state=$2 manifests=$3 deviceplugin=$4
out=$state/out

. testdata/functions.sh

before=$(traces)
"$swiftlet" up --manifests "$manifests" --root "$state/root" >"$out" 2>"$state/log" &
up=$!

await "the web pod is ready" shows web 'Running ready 1/1 restarts 0'
await "the job is completed" shows job 'Completed'
await "the init container and the sidecar did their work" shows init-sidecar 'Running ready 2/2 restarts 0'
await "a host port leads to the pod" says 8080 "" "Hello from a pod"
await "containers share a volume" says 8081 "" "prepared by the init container"

await "hints are shown" grep -q 'Try next' "$out"
request=$(hint 'call a pod') follow=$(hint 'follow its log') more=$(hint 'add a pod')
[ "$request" ] && [ "$follow" ] && [ "$more" ] || fail "a hint is missing"
page "${request##*:}" >/dev/null || fail "the first hint does not work: $request"
timeout 1 bash -c "$follow" >"$state/followed"
grep -q . "$state/followed" || fail "the second hint does not work: $follow"
bash -c "$more" || fail "the third hint does not work: $more"
await "an added manifest is followed" shows more 'Completed'

web=$(pgrep -f -n 'serve :8080') # in the pod
grep -qP '^Seccomp:\t2$' "/proc/$web/status" || fail "the container has no seccomp profile: $(grep Seccomp "/proc/$web/status")"
pids() { # the limit of the process's pod
  local path; path=$(sed -nE 's/^(0:|[0-9]+:[^:]*pids[^:]*):?//p' "/proc/$1/cgroup" | head -n 1)
  cat "/sys/fs/cgroup/pids$(dirname "$path")/pids.max" "/sys/fs/cgroup$(dirname "$path")/pids.max" 2>/dev/null
}
[ "$(pids "$web")" = 4096 ] || fail "the pod may have $(pids "$web") processes: $(cat "/proc/$web/cgroup")"
echo "ok: pods have a seccomp profile and a limit of processes"

sed -i 's/Hello from a pod/Hello again/' "$manifests/web.yaml"
await "a changed ConfigMap reaches the file" says 8080 "" "Hello again"
rm "$manifests/more.json"
await "a removed manifest's pod goes" grep -q 'gone: default/more' "$out"
echo 'kind: Nonsense' >"$manifests/bad.yaml"
sleep 1
says 8080 "" "Hello again" || fail "a bad file harms other pods"
rm "$manifests/bad.yaml"
echo '{apiVersion: v1, kind: Pod, metadata: {name: absent}, spec: {containers: [{name: main, image: "docker.io/none/none:1", imagePullPolicy: Never}]}}' >"$manifests/absent.yaml"
await "the output says why a pod is not up" grep -q 'default/absent-[^ ]* is not up: container main: image docker.io/none/none:1 is not on the node, and imagePullPolicy is Never; fix spec.containers\[0\].imagePullPolicy$' "$out"
rm "$manifests/absent.yaml"
await "and it can be removed" grep -q 'gone: default/absent' "$out"

device() { # NAME INIT MAIN: a pod whose containers request one of these resources each
  echo "{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {
    initContainers: [{name: first, image: docker.io/swiftlet/example:1, args: [primes, '10'], resources: {limits: {$2: 1}}}],
    containers: [{name: main, image: docker.io/swiftlet/example:1, args: [serve, ':9000', /], env: [{name: KEY, value: canary-of-a-manifest}], resources: {limits: {$3: 1}}}]}}" >"$manifests/$1.yaml"
}
device gpu swiftlet.dev/sample swiftlet.dev/sample
device both swiftlet.dev/sample swiftlet.dev/other
await "a pod waits for its device plugin" shows gpu 'WaitingForDevice ready 0/1 .*: no device plugin offers swiftlet.dev/sample$'
why() { "$swiftlet" why "$@" --root "$state/root" >"$state/why" 2>&1; }
why gpu && grep -q '^pod: waits for a device (no device plugin offers swiftlet.dev/sample), since .*; fix the device plugin' "$state/why" || fail "why gpu: $(cat "$state/why")"
why web -o json && grep -q '"sentence": "pod: is ready, since' "$state/why" || fail "why web: $(cat "$state/why")"
why none && fail "there is a reason for a pod that does not exist: $(cat "$state/why")"
why node && grep -q '^default/gpu-[^:]*: pod: waits for a device' "$state/why" || fail "why node: $(cat "$state/why")"
echo "ok: why says what the pod waits for"

mkdir "$state/report"
"$swiftlet" report --root "$state/root" -o "$state/report.tar.gz" >"$state/why" 2>&1 || fail "report: $(cat "$state/why")"
tar -xzf "$state/report.tar.gz" -C "$state/report" --strip-components 1 || fail "the report is no archive"
reported() { # FILE REGEXP
  grep -qE "$2" $state/report/$1 || fail "$1 of the report has no $2: $(head -c 2000 $state/report/$1) $(cat "$state/report/index.txt")"
}
reported pods.json '"name": "KEY"'
reported 'why/default/gpu-*.json' '"class": "WaitsForDevice"'
reported configz.json '"staticPodPath"'
reported host/kubelet.yaml '"staticPodPath"'
reported host/runtime.txt '^containerd .*, CRI v1$'
reported host/cgroups.txt '/kubepods.*/pod'
reported host/mounts.txt " on /run/swiftlet/.* type tmpfs from shm "
reported host/disks.txt "^$state/root: [0-9]+ bytes"
reported metrics/kubelet.txt '^kubelet_running_pods [1-9]'
reported log/containerd.log 'level=info'
grep -rl canary-of-a-manifest "$state/report" && fail "the report has the value of a variable"
left=$(grep 'not read' "$state/report/index.txt") && fail "the report lacks: $left"
echo "ok: a report has what it should, and no secret"
await "another for two of them" shows both 'WaitingForDevice .*: no device plugin offers swiftlet.dev/other, swiftlet.dev/sample$'
grep -q '"Event occurred" object="default/gpu-vm" .*reason="WaitingForDevicePlugin" message="No device plugin offers swiftlet.dev/sample\.' "$state/log" || fail "no event names the resource"
mkdir -p "$state/plugin/devices" && echo -n Healthy | tee "$state/plugin/devices/a" >"$state/plugin/devices/b"
"$deviceplugin" -resource swiftlet.dev/sample -dir "$state/root/kubelet/device-plugins" -state "$state/plugin" -cdi /var/run/cdi 2>"$state/plugin.log" &
plugin=$!
await "it starts when the plugin registers" shows gpu 'Running ready 1/1 restarts 0'
await "the other still waits for the second one" shows both 'WaitingForDevice .*: no device plugin offers swiftlet.dev/other$'
grep -qz 'SAMPLE_DEVICES=[ab]' /proc/[0-9]*/environ || fail "the container has no device"
grep -qz 'SAMPLE_CDI_NAME=[ab]' /proc/[0-9]*/environ || fail "the runtime ignores CDI devices"
rm "$manifests/both.yaml" "$manifests/gpu.yaml"
await "a pod that waits can be removed" grep -q 'gone: default/both' "$out"
await "and the one with the device" grep -q 'gone: default/gpu' "$out"
kill $plugin; wait $plugin 2>/dev/null
rm -r /var/run/cdi # plugins leave their specifications

containerd() { sed -n 's/.*"containerd: started" pid=//p' "$state/log"; }
kill -9 "$(containerd)" || fail "the runtime was not killed"
await "the runtime is back" eval '[ "$(containerd | wc -l)" = 2 ] && test -S /run/swiftlet/containerd.sock'
says 8080 "" "Hello again" || fail "the pod did not survive the runtime"
"$swiftlet" up --manifests "$manifests" --root "$state/root" >"$state/second" 2>&1 && fail "a second instance started"
grep -q "already up, as process $up" "$state/second" || fail "the second instance says: $(cat "$state/second")"

kill -9 $up; wait $up 2>/dev/null
says 8080 "" "Hello again" || fail "the pod did not survive the agent"
: >"$out" # what the first one showed says nothing of the next
"$swiftlet" up --manifests "$manifests" --root "$state/root" >"$out" 2>"$state/log" &
up=$!
await "the next one takes over" shows web 'Running ready 1/1 restarts 0'

kill -INT $up
wait $up || fail "stopping failed"
after=$(traces)
[ "$before" = "$after" ] || fail "left behind: $(diff <(echo "$before") <(echo "$after"))"
echo "ok: nothing is left behind"
