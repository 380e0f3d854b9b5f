package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// addVolume adds a volume to a pod, at /NAME.
func addVolume(p *corev1.Pod, name string, source corev1.VolumeSource, subPath string) *corev1.Pod {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	c := &p.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name, SubPath: subPath})
	return p
}

// TestConfigMapUpdateReachesFile measures how long ConfigMap updates take to reach the mounted file. It does
// not run in parallel with other tests.
func TestConfigMapUpdateReachesFile(t *testing.T) {
	node, in := steadyNode(t), namespace(t)
	changes := 50
	if kubelet != bed.Ours { // the reference takes up to a minute
		changes = 1
	}
	api := client().CoreV1().ConfigMaps(in)
	cm, err := api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "changing"}, Data: map[string]string{"key": "0"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "changing"}}}
	p := startPod(t, in, addVolume(sleeper("reader", node.Name()), "cm", source, ""))
	file := node.Inside(filepath.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~configmap/cm/key"))
	var took []time.Duration
	for i := range changes {
		want := fmt.Sprint(i + 1)
		cm.Data["key"] = want
		began := time.Now()
		if cm, err = api.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for got := []byte(nil); string(got) != want; time.Sleep(2 * time.Millisecond) {
			// A reader that follows ..data while it is replaced may arrive in the old directory when
			// that is already empty.
			got, err = os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) || time.Since(began) > timeoutFor(timeout, 4*timeout) {
				t.Fatalf("the file contains %q (%v), want %s", got, err, want)
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("change to file: median %v, p99 %v", took[len(took)/2], p99)
	if kubelet == bed.Ours && p99 > time.Second {
		t.Errorf("a change took %v to reach the file, want at most a second", p99)
	}
}

// TestSecretCreatedLate: a pod that mounts a missing Secret starts as soon as the Secret is created.
func TestSecretCreatedLate(t *testing.T) {
	node, in := steadyNode(t), namespace(t)
	source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "late"}}
	create(t, in, addVolume(sleeper("waits", node.Name()), "secret", source, ""))
	awaitEvent(t, in, "waits", `MountVolume.SetUp failed for volume "secret" : secret "late" not found`)
	made := time.Now()
	late := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"key": "value"}}
	if _, err := client().CoreV1().Secrets(in).Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, in, "waits", timeoutFor(timeout, 4*timeout), ready)
	took := time.Since(made)
	t.Logf("ready %v after the Secret was created", took)
	if kubelet == bed.Ours && took > 2*time.Second {
		t.Errorf("the pod was ready %v after its Secret, want at most 2 s", took)
	}
}

// awaitEvent waits for an event of the pod that contains text.
func awaitEvent(t *testing.T, in, pod, text string) {
	t.Helper()
	eventually(t, timeout, func() string {
		list, err := client().CoreV1().Events(in).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
		if err != nil {
			return err.Error()
		}
		var events []string
		for _, e := range list.Items {
			if strings.Contains(e.Message, text) {
				return ""
			}
			events = append(events, e.Reason+": "+e.Message)
		}
		return fmt.Sprintf("events %q, want %s", events, text)
	})
}

// TestClaimedVolume: a pod reads what an earlier pod has written to the volume of a claim.
func TestClaimedVolume(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	const folder = "/var/lib/claimed"
	if _, err := node.Exec(t.Context(), "mkdir", "-p", folder); err != nil {
		t.Fatal(err)
	}
	createVolumeAndClaim(t, in, "data", localVolume(node, folder))
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	for i, script := range []string{"echo kept > /data/file", "cat /data/file"} {
		name := fmt.Sprint("pod-", i)
		startPod(t, in, addVolume(sleeper(name, node.Name()), "data", source, ""))
		out, err := execInPod(t.Context(), in, name, "sh", "-c", script)
		if err != nil || (i == 1 && out != "kept\n") {
			t.Errorf("%s: %q, %v", script, out, err)
		}
		if err := client().CoreV1().Pods(in).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitPod(t, in, name, timeout, gone)
	}
	if out, err := node.Exec(t.Context(), "cat", "/proc/mounts"); err != nil || strings.Contains(out, "local-volume/"+in) {
		t.Errorf("still mounted: %v\n%s", err, out)
	}
}

// localVolume is a local volume: a directory of the node.
func localVolume(node *bed.Box, folder string) corev1.PersistentVolumeSpec {
	return corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name()}}},
		}}}},
	}
}

// createVolumeAndClaim creates a volume and a claim that is bound to it.
func createVolumeAndClaim(t *testing.T, in, name string, spec corev1.PersistentVolumeSpec) {
	t.Helper()
	createNamedVolume(t, in, name, in, spec)
}

// createNamedVolume is createVolumeAndClaim with the name of the volume.
func createNamedVolume(t *testing.T, in, name, volumeName string, spec corev1.PersistentVolumeSpec) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	spec.Capacity, spec.AccessModes, spec.StorageClassName = size, modes, "by-hand"
	spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	spec.ClaimRef = &corev1.ObjectReference{Namespace: in, Name: name}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumeName}, Spec: spec}
	if _, err := client().CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	made := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}, StorageClassName: ptr.To("by-hand"), VolumeName: volumeName,
	}}
	if _, err := client().CoreV1().PersistentVolumeClaims(in).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
