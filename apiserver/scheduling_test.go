package main

import (
	"strings"
	"testing"
)

// registeredNode is what a kubelet registers.
const registeredNode = `
apiVersion: v1
kind: Node
metadata: {name: lone, labels: {kubernetes.io/hostname: lone, kubernetes.io/os: linux}}
status:
  capacity: {cpu: "4", memory: 4Gi, pods: "10"}
  allocatable: {cpu: "2", memory: 2Gi, pods: "10"}
  conditions: [{type: Ready, status: "True"}]
`

// big is a Deployment whose pods request a CPU each.
var big = strings.NewReplacer("replicas: 2", "replicas: 3", "image: example", "image: example, resources: {requests: {cpu: '1'}}").Replace(deployment)

// pending defines functions of the shell for the pods that have no node.
const pending = `
unscheduled() { kubectl get pods -A --field-selector spec.nodeName= -o name | wc -l; }
bound() { kubectl get pods -A --field-selector spec.nodeName=lone,status.phase!=Succeeded -o name | wc -l; }
why() { until_ kubectl wait --for=condition=PodScheduled=False $1 --timeout=5s; kubectl get $1 -o jsonpath='{.status.conditions[0].reason}: {.status.conditions[0].message}'; }
own() { kubectl run $1 --image=example --overrides="{\"spec\":{\"terminationGracePeriodSeconds\":0,$2}}"; }
`

// TestScheduling creates pods that fit and that do not. Rows run in this order and build on each other.
func TestScheduling(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while; make test-api runs it")
	}
	i := start(t)
	runWorkloads(t, i, []workloadRow{
		{name: "pods_wait_for_the_node", line: pending + "until_ kubectl get serviceaccount default; own early '\"containers\":[{\"name\":\"c\",\"image\":\"example\"}]'; unscheduled", want: "1\n$"},
		{name: "node_registers", line: pending + "kubectl create -f - && until_ equal bound 1", stdin: registeredNode, want: "created"},
		{name: "pod_that_fits_is_bound_at_once", line: pending + `own fits '"containers":[{"name":"c","image":"example","resources":{"requests":{"cpu":"500m"}}}]' && kubectl get pod fits -o jsonpath={.spec.nodeName}`, want: "lone$"},
		{name: "another_name_of_the_node_does_not_count", line: `kubectl create -f - <<< '{apiVersion: v1, kind: Node, metadata: {name: stale}, status: {allocatable: {cpu: "9", memory: 9Gi, pods: "9"}}}'`, want: "created"},
		{name: "pods_alone_start_no_scheduler", line: "kubectl get --raw /metrics | grep -c ^scheduler_ || true", want: "^0\n$"},
		{name: "pods_that_do_not_fit_wait", line: pending + "kubectl create -f - && until_ equal 'pods app=web' 3; until_ equal bound 3; sleep 1; bound; unscheduled; pods app=web", stdin: big, want: "3\n2\n3\n$"},
		{name: "and_say_why", line: pending + "why $(kubectl get pods --field-selector spec.nodeName= -o name | head -1)", want: `Unschedulable: 0/1 nodes are available: 1 Insufficient cpu\.`},
		{name: "in_an_event", line: "until_ equal 'kubectl get events --field-selector reason=FailedScheduling -o name | wc -l' 2; kubectl get events --field-selector reason=FailedScheduling", want: "Warning +FailedScheduling +pod/web-.* 0/1 nodes are available: 1 Insufficient cpu"},
		{name: "one_that_fits_now_is_bound", line: pending + "kubectl delete pod fits early && until_ equal bound 2 && unscheduled", want: "1\n$"},
		{name: "a_larger_node_takes_the_last", line: pending + `kubectl patch node lone --subresource=status -p '{"status":{"allocatable":{"cpu":"3"}}}' && until_ equal unscheduled 0 && bound`, want: "3\n$"},
		{name: "node_selector", line: pending + `own picky '"nodeSelector":{"disk":"ssd"}' && why pod/picky && kubectl label node lone disk=ssd && until_ equal unscheduled 0`, want: "didn't match Pod's node affinity/selector"},
		{name: "taint", line: pending + `kubectl taint node lone mine=1:NoSchedule && own tainted '"nodeSelector":{}' && why pod/tainted && kubectl taint node lone mine- && until_ equal unscheduled 0`, want: `untolerated taint`},
		{name: "cordon", line: pending + `kubectl cordon lone && own cordoned '"nodeSelector":{}' && why pod/cordoned && kubectl uncordon lone && until_ equal unscheduled 0`, want: "were unschedulable"},
		{name: "extended_resource", line: pending + `own gpu '"containers":[{"name":"c","image":"example","resources":{"limits":{"example.com/gpu":"1"}}}]' && why pod/gpu && kubectl patch node lone --subresource=status -p '{"status":{"allocatable":{"example.com/gpu":"1"}}}' && until_ equal unscheduled 0`, want: `Insufficient example.com/gpu`},
		{name: "disk_pressure_taints_the_node", line: pending + `kubectl patch node lone --subresource=status -p '{"status":{"conditions":[{"type":"DiskPressure","status":"True"}]}}' && until_ equal 'kubectl get node lone -o jsonpath={.spec.taints[*].key}' node.kubernetes.io/disk-pressure
			own pressed '"nodeSelector":{}' && why pod/pressed && kubectl patch node lone --subresource=status -p '{"status":{"conditions":[{"type":"DiskPressure","status":"False"}]}}' && until_ equal unscheduled 0`, want: "untolerated taint"},
		{name: "required_anti_affinity", line: pending + `own apart '"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"web"}}}]}}' && why pod/apart && kubectl delete pod apart`, want: "didn't match pod anti-affinity rules"},
		{name: "higher_priority_preempts", line: pending + `kubectl create priorityclass high --value=1000 && own urgent '"priorityClassName":"high","containers":[{"name":"c","image":"example","resources":{"requests":{"cpu":"1"}}}]' && until_ equal 'kubectl get pod urgent -o jsonpath={.spec.nodeName}' lone
			until_ kubectl get events --field-selector reason=Preempted -o name; kubectl get events --field-selector reason=Preempted; pods app=web`, want: `Preempted by pod (.*\n)+3\n$`},
		{name: "gates_that_are_cleared", line: pending + `own gated '"schedulingGates":[{"name":"example.com/wait"}]'; kubectl patch pod gated --type=json -p '[{"op":"remove","path":"/spec/schedulingGates"}]' && until_ equal 'kubectl get pod gated -o jsonpath={.spec.nodeName}' lone`, want: "patched"},
		{name: "as_many_pods_as_the_node_takes", line: pending + `kubectl create deployment many --image=example --replicas=20 && until_ equal 'pods app=many' 20 && until_ equal bound 10 && why $(kubectl get pods -l app=many --field-selector spec.nodeName= -o name | head -1)`, want: `Too many pods`},
	})
	i.t = t
	i.kill()
	i.launch()
	runWorkloads(t, i, []workloadRow{
		{name: "pods_that_wait_start_the_scheduler_again", line: pending + "until_ equal 'pods app=many' 20; kubectl delete deployment web && until_ equal bound 10 && until_ equal 'pods app=web' 0 && bound", want: "10\n$"},
	})
}
