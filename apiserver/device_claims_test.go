package main

import "testing"

// oneDevice is what a DRA driver of a node with one device publishes, and the class of its devices.
const oneDevice = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: sample}
spec: {selectors: [{cel: {expression: "device.driver == 'sample.swiftlet.dev'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: lone-sample}
spec:
  nodeName: lone
  driver: sample.swiftlet.dev
  pool: {name: lone, generation: 1, resourceSliceCount: 1}
  devices: [{name: only}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: sample}
spec: {spec: {devices: {requests: [{name: device, exactly: {deviceClassName: sample}}]}}}
`

// devices defines functions of the shell for pods with claims.
const devices = `
claim() { kubectl create -f - <<< "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: $1}, spec: {devices: {requests: [{name: device, exactly: {deviceClassName: sample}}]}}}"; }
uses() { kubectl run $1 --image=example --overrides="{\"spec\":{\"terminationGracePeriodSeconds\":0,\"resourceClaims\":[{\"name\":\"d\",$2}],\"containers\":[{\"name\":\"c\",\"image\":\"example\",\"resources\":{\"claims\":[{\"name\":\"d\"}]}}]}}"; }
node() { kubectl get pod $1 -o jsonpath={.spec.nodeName}; }
`

// TestDeviceClaims creates claims of the one device of a node, without a kubelet. Rows run in this order and build on
// each other.
func TestDeviceClaims(t *testing.T) {
	i := start(t)
	runWorkloads(t, i, []workloadRow{
		{name: "node", line: "until_ kubectl get serviceaccount default; kubectl create -f -", stdin: registeredNode, want: "created"},
		{name: "device", line: "kubectl create -f -", stdin: oneDevice, want: "resourceclaimtemplate.resource.k8s.io/sample created"},
		{name: "pod_gets_the_device", line: devices + `claim a && uses first '"resourceClaimName":"a"' && until_ equal 'node first' lone && node first`, want: "lone$"},
		{name: "another_pod_waits", line: devices + pending + `claim b && uses second '"resourceClaimName":"b"' && why pod/second`, want: "Unschedulable: .* cannot allocate all claims"},
		{name: "and_gets_it_when_the_first_has_ended", line: devices + `kubectl delete pod first && until_ equal 'node second' lone && node second`, want: "lone$"},
		{name: "claim_in_use_stays", line: devices + `kubectl delete resourceclaim b --wait=false; kubectl get resourceclaim b -o jsonpath={.metadata.finalizers}`, want: "delete-protection"},
		{name: "until_the_pod_has_ended", line: devices + `kubectl delete pod second && until_ equal 'kubectl get resourceclaim -o name' resourceclaim.resource.k8s.io/a && kubectl get resourceclaim a -o jsonpath={.status}`, want: `"second" deleted.*\n{}$`},
		{name: "template", line: devices + `uses third '"resourceClaimTemplateName":"sample"' && until_ equal 'node third' lone && kubectl get resourceclaim -o name`, want: "third-d-"},
		{name: "its_claim_goes_with_the_pod", line: devices + `kubectl delete pod third && until_ equal 'kubectl get resourceclaim -o name' resourceclaim.resource.k8s.io/a && kubectl get resourceclaim -o name`, want: "deleted.*\nresourceclaim.resource.k8s.io/a\n$"},
	})
}
