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
			for q in deployment replicaset job endpoint_slice garbage_collector_graph_changes; do running $q || true; done`,
			stdin: "{apiVersion: v1, kind: Node, metadata: {name: lone}}", want: "(?s)dry run.*\n0\n0\n0\n0\n0\n$"},
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

const otherWorkloads = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: example}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: example}]}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 1
  selector: {app: old}
  template:
    metadata: {labels: {app: old}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: example}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        metadata: {labels: {app: tick}}
        spec: {terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: c, image: example}]}
`

// TestOtherWorkloads is TestWorkloads for the other kinds.
func TestOtherWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while; make test-api runs it")
	}
	i := start(t)
	runWorkloads(t, i, []workloadRow{
		{name: "apply", line: "until_ kubectl get serviceaccount default; kubectl create -f - <<< '{apiVersion: v1, kind: Node, metadata: {name: stale}}'; kubectl apply -f -", stdin: registeredNode + "---" + otherWorkloads, want: "(.* created\n){5}"},
		{name: "stateful_set_starts_one_after_the_other", line: "until_ kubectl get pod db-0; ready app=db; until_ kubectl get pod db-1; ready app=db; kubectl rollout status statefulset/db --timeout=20s; kubectl get pvc -o name", want: "(?s)roll.*complete.*data-db-0.*data-db-1"},
		{name: "stateful_set_keeps_names", line: "kubectl delete pod db-0 && until_ equal 'kubectl get pod db-0 -o jsonpath={.spec.nodeName}' lone", want: "deleted"},
		{name: "stateful_set_scales_down_from_the_last", line: "ready app=db; kubectl scale statefulset/db --replicas=1 && until_ equal 'pods app=db' 1 && kubectl get pods -l app=db -o name", want: "pod/db-0\n$"},
		{name: "daemon_set_has_a_pod_here_alone", line: "until_ equal 'pods app=agent' 2; until_ equal 'kubectl get pods -l app=agent --field-selector spec.nodeName=lone -o name | wc -l' 1; kubectl get pods -l app=agent -o jsonpath='{range .items[*]}<{.spec.nodeName}>{end}'", want: "^(<lone><>|<><lone>)$"},
		{name: "daemon_set_rolls_out", line: "kubectl delete node stale; ready app=agent; until_ equal 'pods app=agent' 1; kubectl rollout status daemonset/agent --timeout=20s", want: "successfully rolled out"},
		{name: "replication_controller", line: "until_ equal 'pods app=old' 1; kubectl get rc old", want: "old +1 +1"},
		{name: "cron_job_runs_on_demand", line: "kubectl create job --from=cronjob/tick now && until_ equal 'pods app=tick' 1; status app=tick '{\"phase\":\"Succeeded\"}'; kubectl wait --for=condition=complete job/now --timeout=20s", want: "condition met"},
		{name: "cron_job_runs_when_due", line: `kubectl patch cronjob tick --type=merge -p '{"spec":{"schedule":"* * * * *"}}' && kubectl patch cronjob tick --subresource=status --type=merge -p '{"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}'
			until_ equal 'kubectl get jobs -o name | grep -c job.batch/tick-' 1 && kubectl get jobs -o name`, want: "job.batch/tick-"},
		{name: "service_has_endpoints", line: `kubectl patch pod db-0 --subresource=status --type=merge -p '{"status":{"podIP":"10.88.0.9","podIPs":[{"ip":"10.88.0.9"}]}}'
			kubectl create service clusterip web --tcp=80 && kubectl set selector service web app=db
			until_ equal "kubectl get endpointslices -l kubernetes.io/service-name=web -o jsonpath='{.items[*].endpoints[*].addresses[*]}'" 10.88.0.9
			kubectl delete service web && until_ equal 'kubectl get endpointslices -l kubernetes.io/service-name=web -o name' '' && echo gone`, want: "gone\n$"},
		{name: "deletions_cascade", line: "kubectl delete statefulset,daemonset,rc,cronjob --all && until_ equal 'kubectl get pods,jobs,controllerrevisions -l app!=tick -o name | grep -v /now' ''; kubectl get pvc -o name", want: "data-db-0"},
		{name: "volumes_can_be_deleted", line: "kubectl create -f - && kubectl delete pvc,pv --all --timeout=20s", stdin: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], hostPath: {path: /none}}}", want: "(?s)data-db-0.* deleted.*\"disk\" deleted"},
	})
}
