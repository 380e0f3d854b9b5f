package volume

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/poll"
)

// claimed creates a claim and its PersistentVolume with the source.
func (n *node) claimed(source v1.PersistentVolumeSource, change ...func(*v1.PersistentVolumeClaim, *v1.PersistentVolume)) v1.VolumeSource {
	n.t.Helper()
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "ns", UID: "claim-uid"},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		Status:     v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec:       v1.PersistentVolumeSpec{PersistentVolumeSource: source, ClaimRef: &v1.ObjectReference{UID: claim.UID}},
	}
	for _, f := range change {
		f(claim, volume)
	}
	if err := n.client.Tracker().Add(claim); err != nil {
		n.t.Fatal(err)
	}
	if err := n.client.Tracker().Add(volume); err != nil {
		n.t.Fatal(err)
	}
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}
}

func hostPathPV(path string) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}
}

func TestClaimIsResolvedToItsVolume(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	source := n.claimed(hostPathPV(dir), func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
		pv.Annotations = map[string]string{"pv.beta.kubernetes.io/gid": "1234"}
	})
	source.PersistentVolumeClaim.ReadOnly = true
	got, err := n.Mount(t.Context(), n.pod(source))
	if err != nil {
		t.Fatal(err)
	}
	if m := got["vol"]; m.HostPath != dir || !m.ReadOnly || m.Group == nil || *m.Group != 1234 {
		t.Errorf("mounted %+v, want %s read-only for group 1234", m, dir)
	}
}

func TestGenericEphemeralVolume(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	n.claimed(hostPathPV(dir), func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) {
		c.Name = "p-vol"
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "uid-1", Controller: ptr.To(true)}}
	})
	if got := n.mount(n.pod(v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}})); got != dir {
		t.Errorf("mounted %s, want %s", got, dir)
	}
}

// TestInvalidClaims: the messages are those of the reference kubelet.
func TestInvalidClaims(t *testing.T) {
	block := v1.PersistentVolumeBlock
	for _, c := range []struct {
		name, want string
		change     func(*v1.PersistentVolumeClaim, *v1.PersistentVolume)
	}{
		{"missing claim", `error processing PVC ns/claim: failed to fetch PVC from API server: persistentvolumeclaims "claim" not found`,
			func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Name = "other" }},
		{"pending claim", "error processing PVC ns/claim: PVC is not bound",
			func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Status.Phase = v1.ClaimPending }},
		{"lost claim", "error processing PVC ns/claim: PVC is not bound",
			func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Status.Phase = v1.ClaimLost }},
		{"deleted claim without protection", "error processing PVC ns/claim: PVC is being deleted",
			func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) {
				c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
			}},
		{"claim without volume name", "error processing PVC ns/claim: PVC has empty pvc.Spec.VolumeName",
			func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Spec.VolumeName = "" }},
		{"missing volume", `error processing PVC ns/claim: failed to fetch PV pv from API server: persistentvolumes "pv" not found`,
			func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Name = "other" }},
		{"volume without claimRef", "found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim",
			func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.ClaimRef = nil }},
		{"volume of another claim", "found PV object pv but its pv.Spec.ClaimRef.UID x does not point to claim.UID claim-uid",
			func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.ClaimRef.UID = "x" }},
		{"block volume in volumeMounts", "volume vol has volumeMode Block, but is specified in volumeMounts",
			func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.VolumeMode = &block }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t)
			n.cfg.MountTimeout = 100 * time.Millisecond
			_, err := n.Mount(t.Context(), n.pod(n.claimed(hostPathPV(t.TempDir()), c.change)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if recorded := "FailedMount: Unable to attach or mount volumes: unmounted volumes=[vol], unattached volumes=[], failed to process volumes=[vol]: "; !n.events.has(recorded) || !n.events.has(c.want) {
				t.Errorf("events: %q", n.events.recorded)
			}
		})
	}
}

func TestEphemeralVolumeOfAnotherPod(t *testing.T) {
	n := newNode(t)
	n.cfg.MountTimeout = 100 * time.Millisecond
	n.claimed(hostPathPV(t.TempDir()), func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Name = "p-vol" })
	_, err := n.Mount(t.Context(), n.pod(v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}))
	if want := "PVC ns/p-vol was not created for pod ns/p (pod is not owner)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestVolumeOfAnotherNode(t *testing.T) {
	n := newNode(t)
	n.cfg.MountTimeout = 100 * time.Millisecond
	_, err := n.Mount(t.Context(), n.pod(n.claimed(hostPathPV(t.TempDir()), onNode("elsewhere"))))
	if want := `MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func onNode(name string) func(*v1.PersistentVolumeClaim, *v1.PersistentVolume) {
	return func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
		}}}}
	}
}

// TestClaimIsReadAgain: nodes may not watch claims.
func TestClaimIsReadAgain(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	source := n.claimed(hostPathPV(dir), func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Status.Phase = v1.ClaimPending })
	done := make(chan map[string]Mounted, 1)
	p := n.pod(source)
	go func() { got, _ := n.Mount(t.Context(), p); done <- got }()
	poll.Until(t, "the event", func() bool { return n.events.has("PVC is not bound") })
	claim, err := n.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Phase = v1.ClaimBound
	if _, err := n.client.CoreV1().PersistentVolumeClaims("ns").UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-done:
		if got["vol"].HostPath != dir {
			t.Errorf("mounted %+v", got)
		}
	case <-time.After(testTimeout):
		t.Error("the claim was not read again")
	}
}
