package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// TestKubeletSwap replaces the reference kubelet by ours under running pods, and back: no container restarts,
// no pod becomes unready, and each kubelet can stop pods of the other.
func TestKubeletSwap(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("runs both kubelets")
	}
	t.Parallel()
	node := ownNode(t, "swapped")
	swapKubelet(t, node, bed.Reference)
	space := namespace(t)
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Data: map[string]string{"key": "value"}}
	if _, err := client().CoreV1().ConfigMaps(space).Create(t.Context(), data, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	static := node.Path("/etc/kubernetes/manifests/swapped.yaml")
	write(t, static, fmt.Appendf(nil, staticSleeper, images.Busybox))
	before := map[string]*corev1.Pod{}
	for _, pod := range livePods(node.Name()) {
		create(t, space, pod)
		before[pod.Name] = awaitPod(t, space, pod.Name, timeout, ready)
	}
	mirror := awaitPod(t, staticNamespace, "swapped-"+node.Name(), timeout, ready)

	checkUndisturbed(t, space, before, func() { swapKubelet(t, node, bed.Ours) })
	checkSameContainers(t, mirror, awaitPod(t, staticNamespace, mirror.Name, timeout, ready))
	// Ours stops a pod of the reference, and later the other way round.
	deletePod(t, space, "plain")
	delete(before, "plain")
	create(t, space, sleeper("later", node.Name()))
	before["later"] = awaitPod(t, space, "later", timeout, ready)

	swapKubelet(t, node, bed.Reference)
	for name, was := range before {
		checkSameContainers(t, was, awaitPod(t, space, name, 2*timeout, ready))
		deletePod(t, space, name)
	}
	checkSameContainers(t, mirror, awaitPod(t, staticNamespace, mirror.Name, 2*timeout, ready))
}

// staticSleeper is a static pod; its parameter is the image.
const staticSleeper = `apiVersion: v1
kind: Pod
metadata: {name: swapped, namespace: kube-system}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: %q, command: [sleep, "3600"]}]
`

// livePods are pods of the kinds that a swap of kubelets could disturb.
func livePods(node string) []*corev1.Pod {
	plain := sleeper("plain", node)

	probed := sleeper("probed", node)
	probed.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
		PeriodSeconds: 1,
	}

	mounted := sleeper("mounted", node)
	mounted.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "data"}}}},
		{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}
	mounted.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "memory", MountPath: "/memory", SubPath: "part"}}

	assisted := sleeper("assisted", node)
	side := assisted.Spec.Containers[0]
	side.Name, side.RestartPolicy = "side", ptr.To(corev1.ContainerRestartPolicyAlways)
	assisted.Spec.InitContainers = []corev1.Container{
		{Name: "init", Image: images.Busybox, Command: []string{"true"}}, side,
	}

	own := sleeper("own-users", node)
	own.Spec.HostUsers = ptr.To(false)
	return []*corev1.Pod{plain, probed, mounted, assisted, own}
}

// swapKubelet stops the node's kubelet and starts one of the given kind.
func swapKubelet(t *testing.T, node *bed.Box, to bed.KubeletKind) {
	t.Helper()
	if err := node.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: to}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkUndisturbed checks that the pods stay ready and keep their containers while do runs.
func checkUndisturbed(t *testing.T, space string, before map[string]*corev1.Pod, action func()) {
	t.Helper()
	stops := map[string]func() []*corev1.Pod{}
	for name := range before {
		stops[name] = record[corev1.Pod](t, pods(space), name)
	}
	action()
	// When a new pod is ready, the new agent has synced the older ones.
	node := before["plain"].Spec.NodeName
	create(t, space, sleeper("witness", node))
	awaitPod(t, space, "witness", timeout, ready)
	for name, stop := range stops {
		for _, version := range stop() {
			if missing := ready(version); missing != "" {
				t.Errorf("%s: %s", name, missing)
				continue
			}
			checkSameContainers(t, before[name], version)
		}
	}
}

// deletePod deletes a pod and waits until it is deleted.
func deletePod(t *testing.T, space, name string) {
	t.Helper()
	if err := client().CoreV1().Pods(space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// If the shell has not set its trap yet, the whole grace period passes.
	awaitPod(t, space, name, 2*timeout, gone)
}
