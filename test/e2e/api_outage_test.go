package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/test/bed"
)

// TestAPIServerOutage ends the API server for a while, in which pods crash, end, become
// unready and change. Their node goes on without it, and tells all soon after it is back.
// SWIFTLET_API_OUTAGE says how long that is, and has the return be timed.
func TestAPIServerOutage(t *testing.T) {
	t.Parallel()
	lasts, limit := 20*time.Second, within(usual, 4*usual)
	if text := os.Getenv("SWIFTLET_API_OUTAGE"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		limit = within(5*time.Second, 4*usual)
	}
	o := newOutage(t)
	o.bringUp(t)
	over := time.After(lasts)
	if err := o.bed.ControlPlane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	o.change(t)
	<-over
	if now := o.running(t, "steady").Id; !strings.HasSuffix(o.steady, now) {
		t.Errorf("the pod that needed nothing runs in %s, not in %s", now, o.steady)
	}
	o.restarts = o.attempts(t)
	if err := o.bed.ControlPlane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.back = time.Now()
	if wrong := waitFor(limit, func() string { return o.wrong(t) }); wrong != "" {
		t.Fatalf("%v after its return the API server is wrong about:\n%s", limit, wrong)
	}
	t.Logf("after %v without an API server all is told within %v of its return", lasts, time.Since(o.back).Round(10*time.Millisecond))
}

// outage is a cluster of its own, with a node, and what is known of the node's pods.
type outage struct {
	bed     *bed.Bed
	node    *bed.Box
	runtime *cri.Client

	steady, static string // containers
	restarts       int    // of the pod that crashes, before the API server was back
	back           time.Time
}

const (
	outageFlags  = "/etc/kubernetes/flags" // pods read there what to do
	outageStatic = "/etc/kubernetes/manifests/"
)

func newOutage(t *testing.T) *outage {
	t.Helper()
	own, err := bed.Start(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	own.ShowLogs(t)
	o := &outage{bed: own}
	if o.node, err = own.AddNode(t.Context(), "alone"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(o.node.Path(outageFlags), 0o755); err != nil {
		t.Fatal(err)
	}
	o.flag(t, "ready")
	write(t, o.node.Path(outageStatic+"static.yaml"), outageManifest("static", "3600"))
	err = o.node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Config: "crashLoopBackOff: {maxContainerRestartPeriod: 2s}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.runtime, err = cri.Dial(cri.Config{RuntimeEndpoint: o.node.Inside("/run/containerd/containerd.sock"), RequestTimeout: usual})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.runtime.Close() })
	return o
}

func (o *outage) flag(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(o.node.Path(outageFlags+"/"+name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// outageManifest is that of a pod that has this for an argument.
func outageManifest(name, argument string) []byte {
	return fmt.Appendf(nil, `
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "docker.io/library/busybox:1.36", command: [sleep, %q]}
`, name, argument)
}

// bringUp makes the pods and waits until all are as they should be.
func (o *outage) bringUp(t *testing.T) {
	t.Helper()
	unready := o.reader("unready", untilTold)
	unready.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/flags/ready"}}}}
	ends := o.reader("ends", "until test -e /flags/end; do sleep 0.2; done")
	ends.Spec.RestartPolicy = corev1.RestartPolicyNever
	o.awaitServiceAccount(t)
	o.create(t, sleeper("steady", o.node.Name()), unready, ends, scripted("crashes", o.node.Name(), "sleep 1; exit 1"))
	eventually(t, 2*usual, func() string {
		return o.unlike(t, "steady", ready) + o.unlike(t, "unready", ready) + o.unlike(t, "ends", ready) +
			o.unlike(t, "static-alone", ready) + o.unlike(t, "crashes", restarted(2))
	})
	o.steady = o.running(t, "steady").Id
	o.static = o.running(t, "static-alone").Id
}

// reader is a pod whose container finds the flags.
func (o *outage) reader(name, script string) *corev1.Pod {
	p := scripted(name, o.node.Name(), script)
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "flags", MountPath: "/flags"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "flags", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: outageFlags}}}}
	return p
}

// awaitServiceAccount waits for the one that pods need.
func (o *outage) awaitServiceAccount(t *testing.T) {
	t.Helper()
	eventually(t, usual, func() string {
		_, err := o.bed.ControlPlane.Client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return told(err)
	})
}

func (o *outage) create(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		if _, err := o.bed.ControlPlane.Client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// change has everything happen that can happen to pods without an API server.
func (o *outage) change(t *testing.T) {
	t.Helper()
	crashed := o.attempts(t)
	if err := os.Remove(o.node.Path(outageFlags + "/ready")); err != nil {
		t.Fatal(err)
	}
	o.flag(t, "end")
	write(t, o.node.Path(outageStatic+"static.yaml"), outageManifest("static", "7200"))
	write(t, o.node.Path(outageStatic+"another.yaml"), outageManifest("another", "3600"))
	// The reference looks at its folder every 20 s.
	eventually(t, 2*usual, func() string {
		switch changed := o.running(t, "static-alone"); {
		case changed == nil || changed.Id == o.static:
			return "the changed static pod does not run"
		case o.running(t, "another-alone") == nil:
			return "the new static pod does not run"
		case o.running(t, "ends") != nil:
			return "the pod that was to end runs"
		case o.attempts(t) <= crashed:
			return "the pod that crashes was not started again"
		default:
			o.static = changed.Id
			return ""
		}
	})
}

// wrong lists what the API server has wrong.
func (o *outage) wrong(t *testing.T) string {
	t.Helper()
	as := func(container *string) func(*corev1.Pod) string {
		return func(p *corev1.Pod) string {
			if missing := ready(p); missing != "" {
				return missing
			}
			if s := p.Status.ContainerStatuses[0]; container != nil && (!strings.HasSuffix(s.ContainerID, *container) || s.RestartCount != 0) {
				return fmt.Sprintf("its container is %s after %d restarts, not %s", s.ContainerID, s.RestartCount, *container)
			}
			return ""
		}
	}
	return o.unlike(t, "steady", as(&o.steady)) +
		o.unlike(t, "static-alone", as(&o.static)) +
		o.unlike(t, "another-alone", as(nil)) +
		o.unlike(t, "crashes", restarted(o.restarts)) +
		o.unlike(t, "unready", isUnready) +
		o.unlike(t, "ends", hasSucceeded) +
		o.wrongAboutNode(t)
}

func (o *outage) wrongAboutNode(t *testing.T) string {
	t.Helper()
	client := o.bed.ControlPlane.Client
	node, err := client.CoreV1().Nodes().Get(t.Context(), o.node.Name(), metav1.GetOptions{})
	if err != nil {
		return told(err)
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), o.node.Name(), metav1.GetOptions{})
	if err != nil {
		return told(err)
	}
	if missing := nodeReady(corev1.ConditionTrue)(node); missing != "" {
		return missing + "\n"
	}
	// One may have been renewed as the API server came up.
	if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Before(&metav1.MicroTime{Time: o.back.Add(-5 * time.Second)}) {
		return fmt.Sprintf("the node's lease is of %v\n", renewed)
	}
	return ""
}

// unlike is what check finds missing of a pod, as a line.
func (o *outage) unlike(t *testing.T, name string, check func(*corev1.Pod) string) string {
	t.Helper()
	p, err := o.bed.ControlPlane.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return told(err)
	}
	if missing := check(p); missing != "" {
		return name + ": " + missing + "\n"
	}
	return ""
}

func told(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + "\n"
}

// isUnready is a check.
func isUnready(p *corev1.Pod) string {
	if p == nil || p.Status.Phase != corev1.PodRunning || ready(p) == "" {
		return "it is told to be ready"
	}
	return ""
}

// hasSucceeded is a check.
func hasSucceeded(p *corev1.Pod) string {
	if p == nil || p.Status.Phase != corev1.PodSucceeded {
		return "it is told to go on"
	}
	return ""
}

// restarted is a check.
func restarted(times int) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if p == nil || len(p.Status.ContainerStatuses) == 0 || int(p.Status.ContainerStatuses[0].RestartCount) < times {
			return fmt.Sprintf("it was restarted less than %d times", times)
		}
		return ""
	}
}

// containers are those of a pod, by the runtime's word.
func (o *outage) containers(t *testing.T, pod string) []*runtimeapi.Container {
	t.Helper()
	list, err := o.runtime.ListContainers(t.Context(), &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": pod}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// running is the pod's container that runs; nil if none does.
func (o *outage) running(t *testing.T, pod string) *runtimeapi.Container {
	t.Helper()
	for _, c := range o.containers(t, pod) {
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			return c
		}
	}
	return nil
}

// attempts is how often the pod that crashes was started again.
func (o *outage) attempts(t *testing.T) (most int) {
	t.Helper()
	for _, c := range o.containers(t, "crashes") {
		most = max(most, int(c.Metadata.Attempt))
	}
	return most
}
