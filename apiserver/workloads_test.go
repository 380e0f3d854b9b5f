package main

import (
	"regexp"
	"testing"
)

// asKubelet defines functions of the shell that do what a kubelet does.
const asKubelet = `
set -e
until_() { for n in {1..100}; do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "not within 10 s: $*"; kubectl get all -o wide; return 1; }
equal() { [ "$(eval "$1")" = "$2" ]; }
pods() { kubectl get pods -l "$1" -o name | wc -l; }
status() { # SELECTOR STATUS: of the pods that match and that are not deleted meanwhile
  for p in $(kubectl get pods -l "$1" -o name); do kubectl patch $p --subresource=status --type=merge -p "{\"status\":$2}" || ! kubectl get $p; done
}
ready() { status "$1" '{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}'; }
running() { kubectl get --raw /metrics | grep -c "^workqueue_depth{name=\"$1\"}"; }
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: example}]}
`

const jobOf = `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    metadata: {labels: {app: once}}
    spec: {terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: c, image: example}]}
`

// workloadRow is a step of a test of workloads. It fails if its line does.
type workloadRow struct{ name, line, stdin, want string }

func runWorkloads(t *testing.T, i *instance, rows []workloadRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			i.t = t
			if out := i.must(asKubelet+row.line, row.stdin); !regexp.MustCompile(row.want).MatchString(out) {
				t.Errorf("%s: got\n%s\nwant a match of %s", row.line, out, row.want)
			}
		})
	}
}

// TestWorkloads runs controllers without a kubelet. Rows run in this order and build on each other.
func TestWorkloads(t *testing.T) {
	i := start(t)
	runWorkloads(t, i, []workloadRow{
		{name: "pods_alone_start_no_controller", line: `until_ kubectl get serviceaccount default
			kubectl create -f - && uid=$(kubectl get node lone -o jsonpath={.metadata.uid})
			kubectl run owned --image=example --overrides='{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"lone","uid":"'$uid'"}]}}'
			kubectl run alone --image=example && kubectl delete pod alone --force && kubectl create deployment trial --image=example --dry-run=server
			for q in deployment replicaset job garbage_collector_graph_changes; do running $q || true; done`,
			stdin: "{apiVersion: v1, kind: Node, metadata: {name: lone}}", want: "(?s)dry run.*\n0\n0\n0\n0\n$"},
		{name: "foreground_deletion_of_a_plain_object", line: "kubectl create configmap plain && kubectl delete configmap plain --cascade=foreground --timeout=20s && running garbage_collector_graph_changes", want: `configmap "plain" deleted.*\n1\n$`},
		{name: "deployment_creates_pods", line: "kubectl apply -f - && until_ equal 'pods app=web' 2 && kubectl get pods -l app=web -o jsonpath={.items[*].spec.nodeName}", stdin: deployment, want: "lone lone"},
		{name: "and_only_its_controllers", line: "running deployment; running replicaset; running job || true", want: "^1\n1\n0\n$"},
		{name: "rollout_completes", line: "ready app=web; kubectl rollout status deployment/web --timeout=20s && kubectl wait --for=condition=Available deployment/web --timeout=5s", want: "successfully rolled out"},
		{name: "scale_up", line: "kubectl scale deployment/web --replicas=4 && until_ equal 'pods app=web' 4 && kubectl get replicasets -o name", want: "replicaset.apps/web-"},
		{name: "scale_down", line: "kubectl scale deployment/web --replicas=1 && until_ equal 'pods app=web' 1 && ready app=web", want: "scaled"},
		{name: "deleted_pod_is_replaced", line: "old=$(kubectl get pods -l app=web -o name) && kubectl delete $old && until_ equal 'pods app=web' 1 && [ $old != $(kubectl get pods -l app=web -o name) ] && ready app=web", want: "patched"},
		{name: "new_image", line: `kubectl set image deployment/web c=example:2 && until_ equal 'kubectl get replicasets -o name | wc -l' 2
			until_ equal "kubectl get pods -l app=web -o jsonpath='{.items[*].spec.containers[0].image}' | grep -c example:2" 1
			ready app=web; kubectl rollout status deployment/web --timeout=20s && kubectl rollout history deployment/web`, want: "(?s)successfully rolled out.*\n1 .*\n2 "},
		{name: "undo", line: `kubectl rollout undo deployment/web && until_ equal "kubectl get deployment web -o jsonpath={.status.updatedReplicas}" 1
			ready app=web; kubectl rollout status deployment/web --timeout=20s && until_ equal 'pods app=web' 1 && kubectl get pods -l app=web -o jsonpath={.items[*].spec.containers[0].image}`, want: "example$"},
		{name: "orphaned", line: `kubectl delete deployment web --cascade=orphan --timeout=20s && kubectl get replicasets -o jsonpath='{.items[*].metadata.ownerReferences}.' && pods app=web`, want: `deleted.*\n\.1\n$`},
		{name: "adopted", line: `kubectl apply -f - && kubectl scale deployment web --replicas=2 && until_ equal 'pods app=web' 2 && kubectl get replicasets -o jsonpath='{.items[*].metadata.ownerReferences[*].kind}'`, stdin: deployment, want: "Deployment"},
		{name: "job_creates_a_pod", line: "kubectl apply -f - && until_ equal 'pods app=once' 1", stdin: jobOf, want: "created"},
		{name: "job_completes", line: `status app=once '{"phase":"Succeeded"}'; kubectl wait --for=condition=complete job/once --timeout=20s && kubectl get jobs`, want: "once +Complete +1/1"},
		{name: "job_is_removed_after_its_time", line: `kubectl patch job once -p '{"spec":{"ttlSecondsAfterFinished":0}}' && until_ equal 'kubectl get jobs -o name' '' && until_ equal 'pods app=once' 0`, want: "patched"},
	})
	i.t = t
	uids := i.must("kubectl get pods,replicasets,deployments -o jsonpath='{.items[*].metadata.uid}'", "")
	i.kill()
	i.launch()
	runWorkloads(t, i, []workloadRow{
		{name: "restart_starts_what_stored_objects_need", line: "until_ running replicaset; until_ running garbage_collector_graph_changes; running deployment; running job || true", want: "1\n0\n$"},
		{name: "restart_deletes_nothing", line: "until_ equal 'kubectl get --raw /metrics | grep -c workqueue_depth.*garbage_collector_graph_changes' 1; kubectl get pods,replicasets,deployments -o jsonpath='{.items[*].metadata.uid}'", want: regexp.QuoteMeta(uids)},
		{name: "pods_are_replaced_after_restart", line: "kubectl delete pods -l app=web && until_ equal 'pods app=web' 2", want: "deleted"},
		{name: "foreground", line: "kubectl delete deployment web --cascade=foreground --timeout=20s && kubectl get pods,replicasets -l app=web", want: "No resources found"},
		{name: "background", line: "kubectl apply -f - && until_ equal 'pods app=web' 2 && kubectl delete deployment web && until_ equal 'kubectl get pods,replicasets -l app=web -o name' ''", stdin: deployment, want: `"web" deleted`},
	})
}
