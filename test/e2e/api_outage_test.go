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

// TestAPIServerOutage stops the API server for a while, in which pods crash, complete, become unready
// and change. The node works without it, and reports everything soon after it is back. With
// SWIFTLET_API_OUTAGE, the duration of the outage, the limit for that is 5 s.
func TestAPIServerOutage(t *testing.T) {
	t.Parallel()
	lasts, limit := durationFrom(t, "SWIFTLET_API_OUTAGE", 20*time.Second), timeoutFor(timeout, 4*timeout)
	if os.Getenv("SWIFTLET_API_OUTAGE") != "" {
		limit = timeoutFor(5*time.Second, 4*timeout)
	}
	o := newOutage(t)
	o.startPods(t)
	over := time.After(lasts)
	if err := o.bed.ControlPlane.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	o.change(t)
	<-over
	if now := o.running(t, "steady").Id; !strings.HasSuffix(o.steady, now) {
		t.Errorf("the steady pod runs in container %s, not in %s", now, o.steady)
	}
	o.restarts = o.attempts(t)
	if err := o.bed.ControlPlane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.back = time.Now()
	if mismatches := waitFor(limit, func() string { return o.mismatches(t) }); mismatches != "" {
		t.Fatalf("%v after the outage the API server has wrong data:\n%s", limit, mismatches)
	}
	t.Logf("after %v without an API server everything was reported within %v", lasts, time.Since(o.back).Round(10*time.Millisecond))
}

// outage is a cluster with one node, and the state of its pods.
type outage struct {
	bed     *bed.Bed
	node    *bed.Box
	runtime *cri.Client

	steady, static string // containers
	restarts       int    // of the crashing pod, before the API server was back
	back           time.Time
}

const (
	outageFlags  = "/etc/kubernetes/flags" // pods read flag files there
	outageStatic = "/etc/kubernetes/manifests/"
)

func newOutage(t *testing.T) *outage {
	t.Helper()
	own := ownBed(t)
	o := &outage{bed: own}
	var err error
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
	o.runtime, err = cri.Dial(cri.Config{RuntimeEndpoint: o.node.Inside("/run/containerd/containerd.sock"), RequestTimeout: timeout})
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

// outageManifest is the manifest of a pod that sleeps for so many seconds.
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

// startPods creates the pods and waits until all have their expected state.
func (o *outage) startPods(t *testing.T) {
	t.Helper()
	unready := o.reader("unready", exitOnTerm)
	unready.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/flags/ready"}}}}
	ends := o.reader("ends", "until test -e /flags/end; do sleep 0.2; done")
	ends.Spec.RestartPolicy = corev1.RestartPolicyNever
	o.awaitServiceAccount(t)
	o.create(t, sleeper("steady", o.node.Name()), unready, ends, scripted("crashes", o.node.Name(), "sleep 1; exit 1"))
	eventually(t, 2*timeout, func() string {
		return o.checkPod(t, "steady", ready) + o.checkPod(t, "unready", ready) + o.checkPod(t, "ends", ready) +
			o.checkPod(t, "static-alone", ready) + o.checkPod(t, "crashes", restarted(2))
	})
	o.steady = o.running(t, "steady").Id
	o.static = o.running(t, "static-alone").Id
}

// reader is a pod that has the flag files at /flags.
func (o *outage) reader(name, script string) *corev1.Pod {
	p := scripted(name, o.node.Name(), script)
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "flags", MountPath: "/flags"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "flags", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: outageFlags}}}}
	return p
}

// awaitServiceAccount waits for the default service account.
func (o *outage) awaitServiceAccount(t *testing.T) {
	t.Helper()
	eventually(t, timeout, func() string {
		_, err := o.bed.ControlPlane.Client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return errorLine(err)
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

// change makes pods change in every way that is possible without an API server.
func (o *outage) change(t *testing.T) {
	t.Helper()
	crashed := o.attempts(t)
	if err := os.Remove(o.node.Path(outageFlags + "/ready")); err != nil {
		t.Fatal(err)
	}
	o.flag(t, "end")
	write(t, o.node.Path(outageStatic+"static.yaml"), outageManifest("static", "7200"))
	write(t, o.node.Path(outageStatic+"another.yaml"), outageManifest("another", "3600"))
	// The reference checks its manifest directory every 20 s.
	eventually(t, 2*timeout, func() string {
		switch changed := o.running(t, "static-alone"); {
		case changed == nil || changed.Id == o.static:
			return "the changed static pod is not running"
		case o.running(t, "another-alone") == nil:
			return "the new static pod is not running"
		case o.running(t, "ends") != nil:
			return "the pod that should complete is running"
		case o.attempts(t) <= crashed:
			return "the crashing pod was not restarted"
		default:
			o.static = changed.Id
			return ""
		}
	})
}

// mismatches lists the wrong data of the API server.
func (o *outage) mismatches(t *testing.T) string {
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
	return o.checkPod(t, "steady", as(&o.steady)) +
		o.checkPod(t, "static-alone", as(&o.static)) +
		o.checkPod(t, "another-alone", as(nil)) +
		o.checkPod(t, "crashes", restarted(o.restarts)) +
		o.checkPod(t, "unready", isUnready) +
		o.checkPod(t, "ends", hasSucceeded) +
		o.nodeMismatches(t)
}

func (o *outage) nodeMismatches(t *testing.T) string {
	t.Helper()
	client := o.bed.ControlPlane.Client
	node, err := client.CoreV1().Nodes().Get(t.Context(), o.node.Name(), metav1.GetOptions{})
	if err != nil {
		return errorLine(err)
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), o.node.Name(), metav1.GetOptions{})
	if err != nil {
		return errorLine(err)
	}
	if missing := nodeReady(corev1.ConditionTrue)(node); missing != "" {
		return missing + "\n"
	}
	// It may have been renewed while the API server was starting.
	if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Before(&metav1.MicroTime{Time: o.back.Add(-5 * time.Second)}) {
		return fmt.Sprintf("the node's lease was renewed at %v\n", renewed)
	}
	return ""
}

// checkPod returns the result of a check of a pod, as a line.
func (o *outage) checkPod(t *testing.T, name string, check func(*corev1.Pod) string) string {
	t.Helper()
	p, err := o.bed.ControlPlane.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return errorLine(err)
	}
	if missing := check(p); missing != "" {
		return name + ": " + missing + "\n"
	}
	return ""
}

func errorLine(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + "\n"
}

// isUnready checks that the pod is running and not ready.
func isUnready(p *corev1.Pod) string {
	if p == nil || p.Status.Phase != corev1.PodRunning || ready(p) == "" {
		return "its status is ready"
	}
	return ""
}

// hasSucceeded checks that the pod has succeeded.
func hasSucceeded(p *corev1.Pod) string {
	if p == nil || p.Status.Phase != corev1.PodSucceeded {
		return "its phase is not Succeeded"
	}
	return ""
}

// restarted checks that the container was restarted at least so many times.
func restarted(times int) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if p == nil || len(p.Status.ContainerStatuses) == 0 || int(p.Status.ContainerStatuses[0].RestartCount) < times {
			return fmt.Sprintf("it was restarted fewer than %d times", times)
		}
		return ""
	}
}

// containers lists a pod's containers in the runtime, which may still be starting.
func (o *outage) containers(t *testing.T, pod string) (list []*runtimeapi.Container) {
	t.Helper()
	eventually(t, timeout, func() string {
		var err error
		list, err = o.runtime.ListContainers(t.Context(), &runtimeapi.ContainerFilter{
			LabelSelector: map[string]string{"io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": pod}})
		return errorText(err)
	})
	return list
}

// running returns the pod's running container, or nil.
func (o *outage) running(t *testing.T, pod string) *runtimeapi.Container {
	t.Helper()
	for _, c := range o.containers(t, pod) {
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			return c
		}
	}
	return nil
}

// attempts returns how often the crashing pod was restarted.
func (o *outage) attempts(t *testing.T) (most int) {
	t.Helper()
	for _, c := range o.containers(t, "crashes") {
		most = max(most, int(c.Metadata.Attempt))
	}
	return most
}
