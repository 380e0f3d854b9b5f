package main

import "testing"

const limits = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {pods: "1", count/configmaps: "3"}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`

const customEndpoints = `
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: outside}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]
`

// TestPolicies runs the controllers that count for admission, and those of Endpoints.
func TestPolicies(t *testing.T) {
	i := start(t)
	runWorkloads(t, i, []workloadRow{
		{name: "start", line: "until_ kubectl get serviceaccount default; kubectl create -f -; for q in resource_quota_controller_resource_changes disruption endpoint; do running $q || true; done", stdin: registeredNode, want: "0\n0\n0\n$"},
		{name: "quota_is_counted", line: `kubectl apply -f - && until_ equal "kubectl get quota few -o jsonpath='{.status.hard.pods} {.status.used.pods}'" '1 0'
			kubectl run web --image=example -l app=web && until_ equal "kubectl get quota few -o jsonpath='{.status.used.pods}'" 1 && ! kubectl run more --image=example`, stdin: limits, want: "exceeded quota: few"},
		{name: "quota_is_freed", line: `ready app=web; kubectl create configmap one && until_ equal "kubectl get quota few -o jsonpath='{.status.used.count/configmaps}'" 2
			kubectl delete configmap one && until_ equal "kubectl get quota few -o jsonpath='{.status.used.count/configmaps}'" 1`, want: "deleted"},
		{name: "budget_allows_no_eviction", line: `until_ equal "kubectl get pdb keep -o jsonpath='{.status.currentHealthy}{.status.disruptionsAllowed}'" 10
			kubectl create --raw /api/v1/namespaces/default/pods/web/eviction -f - || true`, stdin: eviction, want: "disruption budget"},
		{name: "budget_allows_one", line: `kubectl delete quota few && kubectl run second --image=example -l app=web && ready app=web && until_ equal "kubectl get pdb keep -o jsonpath='{.status.disruptionsAllowed}'" 1
			kubectl create --raw /api/v1/namespaces/default/pods/web/eviction -f -`, stdin: eviction, want: `"status":"Success"`},
		{name: "service_has_endpoints_of_the_old_kind", line: `kubectl patch pod second --subresource=status --type=merge -p '{"status":{"podIP":"10.88.0.9","podIPs":[{"ip":"10.88.0.9"}]}}'
			kubectl create service clusterip web --tcp=80 && kubectl set selector service web app=web && until_ equal "kubectl get endpoints web -o jsonpath='{.subsets[*].addresses[*].ip}'" 10.88.0.9`, want: "selector updated"},
		{name: "and_these_start_no_mirroring", line: "running endpoint_slice_mirroring || true", want: "^0\n$"},
		{name: "attributes_class_can_be_deleted", line: "kubectl create -f - && kubectl delete volumeattributesclass gold --timeout=20s", stdin: "{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: gold}, driverName: example.com, parameters: {a: b}}", want: "deleted"},
		{name: "endpoints_are_mirrored", line: `kubectl apply -f - && until_ equal "kubectl get endpointslices -l kubernetes.io/service-name=outside -o jsonpath='{.items[*].endpoints[*].addresses[*]}'" 192.0.2.1`, stdin: customEndpoints, want: "created"},
	})
}

const eviction = `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": "default"}}`
