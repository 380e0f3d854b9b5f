package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/cri"
	"swiftlet/test/bed"
)

// lastKnownScript runs only with its ConfigMap, its Secret and a token.
const lastKnownScript = `test "$(cat /config/key)" = value && test "$KEY" = hidden && test -s /var/run/secrets/kubernetes.io/serviceaccount/token || exit 1
` + exitOnTerm

// TestLastKnownPods reboots a node while there is no API server: with --last-known-pods its pods run again
// within 30 s, except that of a StatefulSet. When the API server is back, its pods are not restarted, and a
// pod that was deleted meanwhile is stopped.
func TestLastKnownPods(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("the reference waits for the API server")
	}
	t.Parallel()
	o := newLastKnown(t)
	o.await(t, "app", "gone", "db-0")
	file := o.node.Path("/var/lib/kubelet/last_known_state")
	eventually(t, timeout, func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		for _, part := range []string{`"name":"app"`, `"name":"gone"`, `"name":"db-0"`, `"Secret default/secret"`, `"ConfigMap default/config"`, `"token`} {
			if !strings.Contains(string(text), part) {
				return "the file does not have " + part
			}
		}
		return ""
	})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %v, %v, want 0600", file, info.Mode(), err)
	}
	began := o.rebootWithoutAPIServer(t)
	eventually(t, 30*time.Second-time.Since(began), func() string {
		for _, name := range []string{"app", "gone"} {
			if o.running(t, name) == nil {
				return "pod " + name + " does not run"
			}
		}
		return ""
	})
	t.Logf("the pods ran %v after the start of the kubelet", time.Since(began).Round(100*time.Millisecond))
	if c := o.running(t, "db-0"); c != nil {
		t.Error("the pod of the StatefulSet runs")
	}
	app := o.running(t, "app").Id
	if err := o.bed.ControlPlane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.await(t, "app", "db-0")
	eventually(t, 2*timeout, func() string {
		if o.running(t, "gone") != nil {
			return "the deleted pod still runs"
		}
		if events, err := o.bed.Kubectl(t.Context(), "get", "events", "-A", "--field-selector", "reason=LastKnownPods", "-o", "name"); err != nil || events == "" {
			return fmt.Sprintf("there is no event LastKnownPods: %v", err)
		}
		return ""
	})
	o.checkSame(t, app)
}

// newLastKnown makes a cluster with one node and its pods.
func newLastKnown(t *testing.T) *outage {
	t.Helper()
	own := ownBed(t)
	o := &outage{bed: own}
	var err error
	if o.node, err = own.AddNode(t.Context(), "alone"); err != nil {
		t.Fatal(err)
	}
	o.startLastKnown(t)
	if err := o.node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.awaitServiceAccount(t)
	core := own.ControlPlane.Client.CoreV1()
	if _, err := core.ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Data: map[string]string{"key": "value"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, StringData: map[string]string{"KEY": "hidden"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	app := scripted("app", "alone", lastKnownScript)
	app.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "secret"}}}}
	app.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	app.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}}}
	o.create(t, app, sleeper("gone", "alone"))
	template := sleeper("", "alone")
	template.Labels = map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec}}}
	if _, err := own.ControlPlane.Client.AppsV1().StatefulSets("default").Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return o
}

// startLastKnown starts the kubelet.
func (o *outage) startLastKnown(t *testing.T) {
	t.Helper()
	if err := o.node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Flags: []string{"--last-known-pods"}}); err != nil {
		t.Fatal(err)
	}
}

// await waits until the API server has these pods as ready.
func (o *outage) await(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, 2*timeout, func() (missing string) {
		for _, name := range names {
			missing += o.checkPod(t, name, ready)
		}
		return missing
	})
}

// rebootWithoutAPIServer stops the node, deletes a pod by force, stops the API server and starts the node. It
// returns when the kubelet was started.
func (o *outage) rebootWithoutAPIServer(t *testing.T) time.Time {
	t.Helper()
	if err := o.node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := o.bed.ControlPlane.Client.CoreV1().Pods("default").Delete(t.Context(), "gone", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	if err := o.bed.ControlPlane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := o.node.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	o.runtime, err = cri.Dial(cri.Config{RuntimeEndpoint: o.node.Inside("/run/containerd/containerd.sock"), RequestTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.runtime.Close() })
	began := time.Now()
	o.startLastKnown(t)
	return began
}

// checkSame checks that the pod was restarted by the reboot only.
func (o *outage) checkSame(t *testing.T, container string) {
	t.Helper()
	if wrong := o.checkPod(t, "app", func(p *corev1.Pod) string {
		if s := p.Status.ContainerStatuses[0]; !strings.HasSuffix(s.ContainerID, container) || s.RestartCount != 1 {
			return fmt.Sprintf("its container is %s after %d restarts, not %s after the one of the reboot", s.ContainerID, s.RestartCount, container)
		}
		return ""
	}); wrong != "" {
		t.Error(wrong)
	}
}
