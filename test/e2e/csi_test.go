package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// createCSIDriver creates the CSIDriver object and deletes it when the test ends.
func createCSIDriver(t *testing.T, name string, spec storagev1.CSIDriverSpec) {
	t.Helper()
	spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral}
	_, err := client().StorageV1().CSIDrivers().Create(t.Context(),
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client().StorageV1().CSIDrivers().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// claim creates a PersistentVolume of the driver and a claim that is bound to it.
func claim(t *testing.T, space, name string, source corev1.CSIPersistentVolumeSource, mode corev1.PersistentVolumeMode) {
	t.Helper()
	claimWithMode(t, space, name, source, mode, corev1.ReadWriteOnce)
}

// claimWithMode is claim with an access mode.
func claimWithMode(t *testing.T, space, name string, source corev1.CSIPersistentVolumeSource, mode corev1.PersistentVolumeMode, access corev1.PersistentVolumeAccessMode) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("32Mi")}
	modes := []corev1.PersistentVolumeAccessMode{access}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: space + "-" + name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, VolumeMode: &mode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &source},
			ClaimRef:               &corev1.ObjectReference{Namespace: space, Name: name},
		},
	}
	if _, err := client().CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(""), VolumeName: pv.Name, AccessModes: modes, VolumeMode: &mode,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	if _, err := client().CoreV1().PersistentVolumeClaims(space).Create(t.Context(), pvc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// podWithVolume returns a pod with the volume at /data.
func podWithVolume(name, node string, source corev1.VolumeSource) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/data"}}
	return pod
}

func fromClaim(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// awaitDriver waits until the CSINode has the driver.
func awaitDriver(t *testing.T, d *csiDriver) storagev1.CSINodeDriver {
	t.Helper()
	var found storagev1.CSINodeDriver
	await(t, listWatch{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client().StorageV1().CSINodes().List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client().StorageV1().CSINodes().Watch(ctx, o)
		},
	}, d.node.Name(), timeout, func(n *storagev1.CSINode) string {
		if n == nil {
			return "there is no CSINode"
		}
		for _, known := range n.Spec.Drivers {
			if known.Name == d.name {
				found = known
				return ""
			}
		}
		return "the CSINode does not have the driver"
	})
	return found
}

// TestCSI uses volumes of a driver and kills driver and agent at critical moments. At the end nothing
// is left of the volumes.
func TestCSI(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "csi")
	space := namespace(t)
	d := startDriver(t, node, "disk.csi.test", "-topology", "csi.test/rack=r1", "-max-volumes", "7")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{
		AttachRequired: ptr.To(false), PodInfoOnMount: ptr.To(true),
		FSGroupPolicy: ptr.To(storagev1.FileFSGroupPolicy),
		TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}},
	})
	testRegistered(t, d)
	for _, name := range []string{"stage", "publish"} {
		_, err := client().CoreV1().Secrets(space).Create(t.Context(),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	claim(t, space, "disk", corev1.CSIPersistentVolumeSource{
		Driver: d.name, VolumeHandle: d.makeVolume("disk", 32<<20), FSType: "ext4", VolumeAttributes: map[string]string{"color": "red"},
		NodeStageSecretRef:   &corev1.SecretReference{Namespace: space, Name: "stage"},
		NodePublishSecretRef: &corev1.SecretReference{Namespace: space, Name: "publish"},
	}, corev1.PersistentVolumeFilesystem)
	claim(t, space, "raw", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("raw", 32<<20)}, corev1.PersistentVolumeBlock)

	testDriverKilled(t, d, space)
	testAgentKilled(t, d, space)
	testInline(t, d, space)
	testRaw(t, d, space)
	testMeasured(t, d, space)

	release := d.hold("after-NodeUnpublishVolume")
	for _, name := range []string{"one", "two", "inline", "raw"} {
		if err := client().CoreV1().Pods(space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d.awaitBlocked("after-NodeUnpublishVolume")
	d.kill()
	<-d.done
	release()
	d.start()
	for _, name := range []string{"one", "two", "inline", "raw"} {
		awaitPod(t, space, name, 2*timeout, gone)
	}
	eventually(t, 2*timeout, d.leftovers)
}

// testRegistered checks CSINode, annotation and labels of the driver.
func testRegistered(t *testing.T, d *csiDriver) {
	got := awaitDriver(t, d)
	id := "id-of-" + d.node.Name()
	if got.NodeID != id || len(got.TopologyKeys) != 1 || got.TopologyKeys[0] != "csi.test/rack" ||
		got.Allocatable == nil || *got.Allocatable.Count != 7 {
		t.Errorf("CSINode has %+v", got)
	}
	node, err := client().CoreV1().Nodes().Get(t.Context(), d.node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"` + d.name + `":"` + id + `"}`; node.Annotations["csi.volume.kubernetes.io/nodeid"] != want {
		t.Errorf("annotation is %s, want %s", node.Annotations["csi.volume.kubernetes.io/nodeid"], want)
	}
	if node.Labels["csi.test/rack"] != "r1" {
		t.Errorf("labels are %v", node.Labels)
	}
}

// testDriverKilled kills the driver when it has staged a volume but not responded yet.
func testDriverKilled(t *testing.T, d *csiDriver, space string) {
	release := d.hold("after-NodeStageVolume")
	pod := podWithVolume("one", d.node.Name(), fromClaim("disk"))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](4321)}
	made := create(t, space, pod)
	d.awaitBlocked("after-NodeStageVolume")
	d.kill()
	<-d.done
	release()
	d.start()
	awaitPod(t, space, "one", 2*timeout, ready)

	staged := d.calls("NodeStageVolume")
	if len(staged) == 0 || staged[0].Secrets["key"] != "stage" || staged[0].VolumeContext["color"] != "red" {
		t.Fatalf("staged with %v", staged)
	}
	published := d.calls("NodePublishVolume")
	if len(published) != 1 {
		t.Fatalf("published %d times", len(published))
	}
	want := map[string]string{
		"color":                                  "red",
		"csi.storage.k8s.io/pod.name":            "one",
		"csi.storage.k8s.io/pod.namespace":       space,
		"csi.storage.k8s.io/pod.uid":             string(made.UID),
		"csi.storage.k8s.io/serviceAccount.name": "default",
		"csi.storage.k8s.io/ephemeral":           "false",
	}
	got := published[0].VolumeContext
	var tokens map[string]struct{ Token, ExpirationTimestamp string }
	if err := json.Unmarshal([]byte(got["csi.storage.k8s.io/serviceAccount.tokens"]), &tokens); err != nil || tokens["vault"].Token == "" {
		t.Errorf("tokens are %v: %v", tokens, err)
	}
	delete(got, "csi.storage.k8s.io/serviceAccount.tokens")
	if !maps.Equal(got, want) {
		t.Errorf("published with %v, want %v", got, want)
	}
	if published[0].Secrets["key"] != "publish" || published[0].StagingTargetPath != staged[0].StagingTargetPath {
		t.Errorf("published with %v", published[0])
	}
	testVolumeData(t, d, space, made)
	inPod(t, d.node, space, "one", `test "$(stat -c %g /data)" = 4321 && echo kept > /data/file && grep -q "/data ext4" /proc/mounts`)
}

// testVolumeData checks the vol_data.json files, which the next kubelet needs.
func testVolumeData(t *testing.T, d *csiDriver, space string, pod *corev1.Pod) {
	t.Helper()
	volume := space + "-disk"
	text, err := os.ReadFile(d.node.Path(filepath.Join("/var/lib/kubelet/pods", string(pod.UID), "volumes/kubernetes.io~csi", volume, "vol_data.json")))
	if err != nil {
		t.Fatal(err)
	}
	var volData map[string]string
	if err := json.Unmarshal(text, &volData); err != nil {
		t.Fatal(err)
	}
	if id := volData["attachmentID"]; !strings.HasPrefix(id, "csi-") || len(id) != 68 {
		t.Errorf("attachmentID is %s", id)
	}
	handle := volData["volumeHandle"]
	delete(volData, "attachmentID")
	want := map[string]string{"driverName": d.name, "nodeName": d.node.Name(), "specVolID": volume, "volumeHandle": handle, "volumeLifecycleMode": "Persistent"}
	if !maps.Equal(volData, want) {
		t.Errorf("vol_data.json is %v, want %v", volData, want)
	}
	files, err := filepath.Glob(d.node.Path("/var/lib/kubelet/plugins/kubernetes.io/csi/" + d.name + "/*/vol_data.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("vol_data.json of staged volumes: %v %v", files, err)
	}
	staged, err := os.ReadFile(files[0])
	if want := `{"driverName":"` + d.name + `","volumeHandle":"` + handle + `"}` + "\n"; err != nil || string(staged) != want {
		t.Errorf("vol_data.json of the staged volume is %s, want %s", staged, want)
	}
}

// testAgentKilled kills the agent when a volume is staged and before it is published.
func testAgentKilled(t *testing.T, d *csiDriver, space string) {
	release := d.hold("before-NodePublishVolume")
	create(t, space, podWithVolume("two", d.node.Name(), fromClaim("disk")))
	d.awaitBlocked("before-NodePublishVolume")
	if err := d.node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	release()
	if err := d.node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "two", 2*timeout, ready)
	inPod(t, d.node, space, "two", `test "$(cat /data/file)" = kept`)
	inPod(t, d.node, space, "one", `test "$(cat /data/file)" = kept`)
}

// testInline uses a CSI ephemeral inline volume.
func testInline(t *testing.T, d *csiDriver, space string) {
	create(t, space, podWithVolume("inline", d.node.Name(), corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: d.name}}))
	awaitPod(t, space, "inline", 2*timeout, ready)
	inPod(t, d.node, space, "inline", `echo hello > /data/file`)
}

// testRaw uses a raw block volume that was expanded before it is mounted.
func testRaw(t *testing.T, d *csiDriver, space string) {
	// If the claim were bound after the expansion, it would have the new size, and no expansion
	// would be needed.
	eventually(t, timeout, func() string {
		c, err := client().CoreV1().PersistentVolumeClaims(space).Get(t.Context(), "raw", metav1.GetOptions{})
		switch {
		case err != nil:
			return err.Error()
		case c.Status.Phase != corev1.ClaimBound:
			return fmt.Sprintf("the claim is %s", c.Status.Phase)
		}
		return ""
	})
	_, err := client().CoreV1().PersistentVolumes().Patch(t.Context(), space+"-raw", types.StrategicMergePatchType,
		[]byte(`{"spec":{"capacity":{"storage":"64Mi"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := podWithVolume("raw", d.node.Name(), fromClaim("raw"))
	c := &pod.Spec.Containers[0]
	c.VolumeMounts, c.VolumeDevices = nil, []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/raw"}}
	made := create(t, space, pod)
	awaitPod(t, space, "raw", 2*timeout, ready)
	for _, path := range []string{
		`globalMapPath "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/` + space + `-raw/dev"`,
		`volumeMapPath "/var/lib/kubelet/pods/` + string(made.UID) + `/volumeDevices/kubernetes.io~csi"`,
	} {
		awaitEvent(t, space, "raw", `MapVolume.MapPodDevice succeeded for volume "`+space+`-raw" `+path)
	}
	inPod(t, d.node, space, "raw", `test -b /dev/raw && echo written | dd of=/dev/raw bs=512 conv=sync && dd if=/dev/raw bs=7 count=1 | grep -q written`)

	calls := d.calls("NodeExpandVolume")
	base := "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices"
	if len(calls) == 0 || calls[0].CapacityRange.RequiredBytes != "67108864" ||
		calls[0].VolumePath != filepath.Join(base, "publish", space+"-raw", string(made.UID)) ||
		calls[0].StagingTargetPath != filepath.Join(base, "staging", space+"-raw") {
		t.Errorf("expanded with %+v", calls)
	}
	inPod(t, d.node, space, "raw", `dd if=/dev/raw of=/dev/null bs=1M skip=48 count=1 2>&1 | grep -q "1+0 records in"`)
	claim, err := client().CoreV1().PersistentVolumeClaims(space).Get(t.Context(), "raw", metav1.GetOptions{})
	if err != nil || claim.Status.Capacity.Storage().String() != "64Mi" {
		t.Errorf("status of the claim: %v: %v", claim.Status, err)
	}
}

// testMeasured checks that the Summary API and the metrics have the driver's volume stats.
func testMeasured(t *testing.T, d *csiDriver, space string) {
	awaitStats(t, d.node, space, "one", func(p *statsapi.PodStats) string {
		for _, v := range p.VolumeStats {
			if v.PVCRef == nil || v.PVCRef.Name != "disk" {
				continue
			}
			if c := *v.CapacityBytes; c < 20<<20 || c > 32<<20 || *v.UsedBytes == 0 || *v.Inodes == 0 {
				return fmt.Sprintf("volume stats are %+v", v)
			}
			return ""
		}
		return "the Summary API does not have the volume"
	})
	if len(d.calls("NodeGetVolumeStats")) == 0 {
		t.Error("NodeGetVolumeStats was not called")
	}
	of := fmt.Sprintf(`{namespace=%q,persistentvolumeclaim="disk"}`, space)
	plugin := fmt.Sprintf(`plugin_manager_total_plugins{socket_path="/var/lib/kubelet/plugins_registry/%s-reg.sock",state=`, d.name)
	awaitMetrics(t, d.node, families{}, map[string]float64{
		"kubelet_volume_stats_capacity_bytes" + of:  20 << 20,
		"kubelet_volume_stats_available_bytes" + of: 1,
		"kubelet_volume_stats_used_bytes" + of:      1,
		"kubelet_volume_stats_inodes" + of:          1,
		"kubelet_volume_stats_inodes_free" + of:     1,
		"kubelet_volume_stats_inodes_used" + of:     1,
		plugin + `"desired_state_of_world"}`:        1,
		plugin + `"actual_state_of_world"}`:         1,
	})
}

// inPod runs a script in the pod's container; it must succeed.
func inPod(t *testing.T, node *bed.Box, space, name, script string) {
	t.Helper()
	pod, err := client().CoreV1().Pods(space).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	if out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", "in-pod", id, "sh", "-c", script); err != nil {
		t.Errorf("in pod %s: %v\n%s", name, err, out)
	}
}
