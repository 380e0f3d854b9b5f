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

// TestSwap puts our agent in the reference's place under live pods, and back: no container
// is restarted, nobody sees a pod turn unready, and each can end what the other began.
func TestSwap(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("both take part")
	}
	t.Parallel()
	node := ownNode(t, "swapped")
	swap(t, node, bed.Reference)
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
		before[pod.Name] = awaitPod(t, space, pod.Name, usual, ready)
	}
	mirror := awaitPod(t, staticNamespace, "swapped-"+node.Name(), usual, ready)

	unseen(t, space, before, func() { swap(t, node, bed.Ours) })
	same(t, mirror, awaitPod(t, staticNamespace, mirror.Name, usual, ready))
	// What the reference made, ours can end; and what ours makes, the reference can.
	remove(t, space, "plain")
	delete(before, "plain")
	create(t, space, sleeper("later", node.Name()))
	before["later"] = awaitPod(t, space, "later", usual, ready)

	swap(t, node, bed.Reference)
	for name, was := range before {
		same(t, was, awaitPod(t, space, name, 2*usual, ready))
		remove(t, space, name)
	}
	same(t, mirror, awaitPod(t, staticNamespace, mirror.Name, 2*usual, ready))
}

// staticSleeper is a pod from a file, for an image.
const staticSleeper = `apiVersion: v1
kind: Pod
metadata: {name: swapped, namespace: kube-system}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: %q, command: [sleep, "3600"]}]
`

// livePods are pods of the kinds that a change of agents could disturb.
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

// swap ends the agent of the node and starts one of the given kind.
func swap(t *testing.T, node *bed.Box, to bed.KubeletKind) {
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

// unseen fails if anybody who watches the pods notices what is done.
func unseen(t *testing.T, space string, before map[string]*corev1.Pod, do func()) {
	t.Helper()
	stops := map[string]func() []*corev1.Pod{}
	for name := range before {
		stops[name] = record[corev1.Pod](t, pods(space), name)
	}
	do()
	// A pod that the new agent brought up shows that it has been through the old ones.
	node := before["plain"].Spec.NodeName
	create(t, space, sleeper("witness", node))
	awaitPod(t, space, "witness", usual, ready)
	for name, stop := range stops {
		for _, version := range stop() {
			if missing := ready(version); missing != "" {
				t.Errorf("%s: %s", name, missing)
				continue
			}
			same(t, before[name], version)
		}
	}
}

// remove deletes a pod and waits until it is gone.
func remove(t *testing.T, space, name string) {
	t.Helper()
	if err := client().CoreV1().Pods(space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// A shell that has not come to its trap yet lets the whole grace period pass.
	awaitPod(t, space, name, 2*usual, gone)
}
