package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

const user = `
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: example, volumeMounts: [{name: v, mountPath: /data}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
`

// claimed defines functions of the shell for volumes.
const claimed = `
dirs() { find $HOME -path "*/volumes/*" -prune -print | wc -l; }
phase() { kubectl get $1 -o jsonpath={.status.phase}; }
`

// TestClaims creates claims and what uses them, without a kubelet. Rows run in this order and build on each other.
func TestClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while; make test-api runs it")
	}
	i := start(t)
	runWorkloads(t, i, []workloadRow{
		{name: "default_class", line: "until_ kubectl get serviceaccount default; kubectl create -f - && kubectl get storageclass", stdin: registeredNode, want: `local-path \(default\) +swiftlet.dev/local-path +Delete +WaitForFirstConsumer`},
		{name: "claim_waits_for_a_pod", line: claimed + "kubectl create -f - && until_ kubectl get events --field-selector reason=WaitForFirstConsumer; phase pvc/data; dirs", stdin: claim, want: "Pending0\n$"},
		{name: "pod_gets_a_volume", line: claimed + "kubectl create -f - && until_ equal 'phase pvc/data' Bound && until_ equal 'kubectl get pod user -o jsonpath={.spec.nodeName}' lone; dirs; kubectl get pv -o jsonpath={.items[*].spec.local.path}", stdin: user, want: "1\n.*/volumes/pvc-"},
		{name: "and_keeps_it", line: claimed + "touch $(ls -d $HOME/volumes/*)/kept; kubectl delete pod user && kubectl create -f - && until_ equal 'kubectl get pod user -o jsonpath={.spec.nodeName}' lone; ls $HOME/volumes/*", stdin: user, want: "kept\n$"},
		{name: "claim_in_use_stays", line: claimed + "kubectl delete pvc data --wait=false; sleep 0.5; phase pvc/data; dirs", want: "Bound1\n$"},
		{name: "directory_goes_with_the_claim", line: claimed + "kubectl delete pod user && until_ equal 'kubectl get pvc,pv -o name' '' && until_ equal dirs 0 && dirs", want: "0\n$"},
		{name: "retained", line: claimed + `kubectl create -f -; until_ equal 'phase pvc/data' Bound && kubectl delete pvc data && until_ equal "kubectl get pv -o jsonpath={.items[*].status.phase}" Released; dirs`, stdin: "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: kept}, provisioner: swiftlet.dev/local-path, reclaimPolicy: Retain}\n---" + strings.Replace(claim, "spec: {", "spec: {storageClassName: kept, ", 1), want: "1\n$"},
		{name: "volume_of_another_directory_is_not_deleted", line: claimed + `mkdir $HOME/precious; kubectl create -f - <<< '{apiVersion: v1, kind: PersistentVolume, metadata: {name: stolen, annotations: {pv.kubernetes.io/provisioned-by: swiftlet.dev/local-path}}, spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, storageClassName: mine, local: {path: '$HOME'/precious}, claimRef: {namespace: default, name: gone, uid: gone}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: Exists}]}]}}}}'
			until_ equal 'phase pv/stolen' Failed; kubectl get pv stolen -o jsonpath={.status.message}; ls -d $HOME/precious`, want: "not the directory of that name.*precious"},
		{name: "ephemeral_volume", line: claimed + `kubectl delete pv --all --wait=false; kubectl run e --image=example --overrides='{"spec":{"terminationGracePeriodSeconds":0,"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Mi"}}}}}}]}}'
			until_ equal 'phase pvc/e-v' Bound && until_ equal 'kubectl get pod e -o jsonpath={.spec.nodeName}' lone && kubectl delete pod e && until_ equal 'kubectl get pvc -o name' ''`, want: `"e" deleted`},
	})
	if info, err := os.Stat(filepath.Join(i.dir, "volumes")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others can reach volumes: %v, %v", info, err)
	}
}
