package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// TestEtcdRestore restores etcd from a backup. Since the backup pods have become unready, crashed,
// completed, been deleted and been created. Resource versions go back. The node's pods keep running,
// and the API server has their correct status within 30 s. The reference leaves it wrong.
func TestEtcdRestore(t *testing.T) {
	t.Parallel()
	r := restore{outage: newOutage(t), containers: map[string]string{}}
	r.startPods(t)
	if err := r.bed.ControlPlane.BackUpEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.change(t)
	before := r.version(t)
	if err := r.bed.ControlPlane.RestoreEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.back = time.Now()
	if now := r.version(t); now >= before {
		t.Fatalf("resource version %d after the restore, %d before", now, before)
	}
	mismatches := waitFor(timeout, func() string { return r.mismatches(t) })
	switch {
	case mismatches != "" && kubelet == bed.Reference:
		// It continues its watches at versions that the API server no longer has.
		t.Skipf("%v after the restore the API server has wrong data with the reference:\n%s", timeout, mismatches)
	case mismatches != "":
		t.Fatalf("%v after the restore the API server has wrong data:\n%s", timeout, mismatches)
	}
	t.Logf("all data is correct %v after the restore", time.Since(r.back).Round(10*time.Millisecond))
	r.checkContainers(t)
	// Each pod that differs from the backup needs one write, and those that start again need more.
	if writes := r.statusWrites(t); writes > 12 {
		t.Errorf("%d status writes after the restore, want at most 12", writes)
	}
}

// restore is a cluster, and the containers on its node before the restore.
type restore struct {
	*outage
	containers map[string]string // by pod
}

// startPods creates the pods that are in the backup.
func (r restore) startPods(t *testing.T) {
	t.Helper()
	r.awaitServiceAccount(t)
	unready := r.reader("unready", exitOnTerm)
	unready.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/flags/ready"}}}}
	ends := r.reader("ends", "until test -e /flags/end; do sleep 0.2; done")
	ends.Spec.RestartPolicy = corev1.RestartPolicyNever
	crashes := r.reader("crashes", "test -e /flags/crash && exec sleep 3600; until test -e /flags/crash; do sleep 0.2; done; exit 1")
	r.create(t, sleeper("steady", r.node.Name()), unready, ends, crashes, sleeper("deleted", r.node.Name()))
	eventually(t, 2*timeout, func() string {
		return r.checkPod(t, "steady", ready) + r.checkPod(t, "unready", ready) + r.checkPod(t, "ends", ready) +
			r.checkPod(t, "crashes", ready) + r.checkPod(t, "deleted", ready) + r.checkPod(t, "static-alone", ready)
	})
}

// change makes the changes that are not in the backup.
func (r restore) change(t *testing.T) {
	t.Helper()
	if err := os.Remove(r.node.Path(outageFlags + "/ready")); err != nil {
		t.Fatal(err)
	}
	r.flag(t, "crash")
	r.flag(t, "end")
	write(t, r.node.Path(outageStatic+"another.yaml"), outageManifest("another", "3600"))
	r.create(t, sleeper("late", r.node.Name()))
	pods := r.bed.ControlPlane.Client.CoreV1().Pods("default")
	if err := pods.Delete(t.Context(), "deleted", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}); err != nil {
		t.Fatal(err)
	}
	// The reference checks its manifest directory every 20 s.
	eventually(t, 2*timeout, func() string {
		return r.checkPod(t, "unready", isUnready) + r.checkPod(t, "crashes", restarted(1)) + r.checkPod(t, "crashes", ready) +
			r.checkPod(t, "ends", hasSucceeded) + r.checkPod(t, "late", ready) + r.checkPod(t, "another-alone", ready) + r.present(t, "deleted")
	})
	r.advance(t)
	for _, name := range []string{"steady", "unready", "crashes", "static-alone", "another-alone"} {
		r.containers[name] = r.running(t, name).Id
	}
}

// advance increases the resource version by more than a control plane writes at its start, so that
// versions after the restore are older for the rest of the test.
func (r restore) advance(t *testing.T) {
	t.Helper()
	maps := r.bed.ControlPlane.Client.CoreV1().ConfigMaps("default")
	object, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counter"}}, metav1.CreateOptions{})
	for i := 0; err == nil && i < 1000; i++ {
		object.Data = map[string]string{"count": strconv.Itoa(i)}
		object, err = maps.Update(t.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// mismatches lists the wrong data of the API server.
func (r restore) mismatches(t *testing.T) string {
	t.Helper()
	mismatches := r.checkPod(t, "steady", ready) + r.checkPod(t, "static-alone", ready) + r.checkPod(t, "another-alone", ready) +
		r.checkPod(t, "unready", isUnready) + r.checkPod(t, "ends", hasSucceeded) +
		r.checkPod(t, "crashes", restarted(1)) + r.checkPod(t, "crashes", ready)
	for name, id := range r.containers {
		mismatches += r.checkPod(t, name, runsIn(id))
	}
	// The backup has the deleted pod, and not the one that was created later.
	if again := r.running(t, "deleted"); again == nil {
		mismatches += "deleted: it is not running\n"
	} else {
		mismatches += r.checkPod(t, "deleted", ready) + r.checkPod(t, "deleted", runsIn(again.Id))
	}
	if r.running(t, "late") != nil {
		mismatches += "late: it is running\n"
	}
	return mismatches + r.present(t, "late") + r.nodeMismatches(t)
}

// checkContainers checks that no container was restarted because of the restore.
func (r restore) checkContainers(t *testing.T) {
	t.Helper()
	for name, id := range r.containers {
		if now := r.running(t, name); now == nil || now.Id != id {
			t.Errorf("pod %s runs in container %v, not in %s", name, now, id)
		}
	}
}

// present returns a line if the API server has the pod.
func (r restore) present(t *testing.T, name string) string {
	t.Helper()
	_, err := r.bed.ControlPlane.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	return name + ": it exists\n"
}

// version returns the API server's current resource version.
func (r restore) version(t *testing.T) int {
	t.Helper()
	list, err := r.bed.ControlPlane.Client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.Atoi(list.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// statusWrites returns the number of pod status writes since the API server's start.
func (r restore) statusWrites(t *testing.T) (writes int) {
	t.Helper()
	text, err := r.bed.ControlPlane.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="pods"`) ||
			!strings.Contains(line, `subresource="status"`) || !strings.Contains(line, `verb="PATCH"`) {
			continue
		}
		n, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
		if err != nil {
			t.Fatal(err)
		}
		writes += n
	}
	return writes
}

// runsIn checks the pod's container ID.
func runsIn(id string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if len(p.Status.ContainerStatuses) == 0 || !strings.HasSuffix(p.Status.ContainerStatuses[0].ContainerID, id) {
			return fmt.Sprintf("its container is not %s", id)
		}
		return ""
	}
}
