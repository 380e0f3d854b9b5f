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

// TestEtcdRestore restores etcd from a backup, after which pods have become unready, crashed,
// ended, been deleted and been created. Resource versions go back by that. The node's pods
// run on, and the API server has their true status within 30 s. The reference is known to
// leave it wrong.
func TestEtcdRestore(t *testing.T) {
	t.Parallel()
	r := restore{outage: newOutage(t), containers: map[string]string{}}
	r.bringUp(t)
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
	wrong := waitFor(usual, func() string { return r.wrong(t) })
	switch {
	case wrong != "" && kubelet == bed.Reference:
		// It continues its watches at versions that the API server no longer has.
		t.Skipf("%v after the restore the reference leaves the API server wrong about:\n%s", usual, wrong)
	case wrong != "":
		t.Fatalf("%v after the restore the API server is wrong about:\n%s", usual, wrong)
	}
	t.Logf("all is right %v after the restore", time.Since(r.back).Round(10*time.Millisecond))
	r.checkContainers(t)
	// Each of the pods that differ from the backup needs one, those that start again more.
	if writes := r.statusWrites(t); writes > 12 {
		t.Errorf("%d writes of pod status after the restore", writes)
	}
}

// restore is a cluster of its own, and what runs on its node before the restore.
type restore struct {
	*outage
	containers map[string]string // by pod
}

// bringUp makes the pods that the backup has.
func (r restore) bringUp(t *testing.T) {
	t.Helper()
	r.awaitServiceAccount(t)
	unready := r.reader("unready", untilTold)
	unready.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/flags/ready"}}}}
	ends := r.reader("ends", "until test -e /flags/end; do sleep 0.2; done")
	ends.Spec.RestartPolicy = corev1.RestartPolicyNever
	crashes := r.reader("crashes", "test -e /flags/crash && exec sleep 3600; until test -e /flags/crash; do sleep 0.2; done; exit 1")
	r.create(t, sleeper("steady", r.node.Name()), unready, ends, crashes, sleeper("deleted", r.node.Name()))
	eventually(t, 2*usual, func() string {
		return r.unlike(t, "steady", ready) + r.unlike(t, "unready", ready) + r.unlike(t, "ends", ready) +
			r.unlike(t, "crashes", ready) + r.unlike(t, "deleted", ready) + r.unlike(t, "static-alone", ready)
	})
}

// change has everything happen that the backup does not know of.
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
	// The reference looks at its folder every 20 s.
	eventually(t, 2*usual, func() string {
		return r.unlike(t, "unready", isUnready) + r.unlike(t, "crashes", restarted(1)) + r.unlike(t, "crashes", ready) +
			r.unlike(t, "ends", hasSucceeded) + r.unlike(t, "late", ready) + r.unlike(t, "another-alone", ready) + r.present(t, "deleted")
	})
	r.advance(t)
	for _, name := range []string{"steady", "unready", "crashes", "static-alone", "another-alone"} {
		r.containers[name] = r.running(t, name).Id
	}
}

// advance has the resource version go on, by more than a control plane writes at its start:
// the versions after the restore are to be older ones for as long as the test looks.
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

// wrong lists what the API server has wrong.
func (r restore) wrong(t *testing.T) string {
	t.Helper()
	wrong := r.unlike(t, "steady", ready) + r.unlike(t, "static-alone", ready) + r.unlike(t, "another-alone", ready) +
		r.unlike(t, "unready", isUnready) + r.unlike(t, "ends", hasSucceeded) +
		r.unlike(t, "crashes", restarted(1)) + r.unlike(t, "crashes", ready)
	for name, id := range r.containers {
		wrong += r.unlike(t, name, runsIn(id))
	}
	// The backup has the pod that was deleted, and not the one that came later.
	if again := r.running(t, "deleted"); again == nil {
		wrong += "deleted: it does not run\n"
	} else {
		wrong += r.unlike(t, "deleted", ready) + r.unlike(t, "deleted", runsIn(again.Id))
	}
	if r.running(t, "late") != nil {
		wrong += "late: it runs\n"
	}
	return wrong + r.present(t, "late") + r.wrongAboutNode(t)
}

// checkContainers fails if a container was restarted by the restore.
func (r restore) checkContainers(t *testing.T) {
	t.Helper()
	for name, id := range r.containers {
		if now := r.running(t, name); now == nil || now.Id != id {
			t.Errorf("pod %s runs in %v, not in %s", name, now, id)
		}
	}
}

// present is a line if the API server has the pod.
func (r restore) present(t *testing.T, name string) string {
	t.Helper()
	_, err := r.bed.ControlPlane.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	return name + ": it exists\n"
}

// version is that of the API server as a whole.
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

// statusWrites is how often the status of a pod was written since the API server's start.
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

// runsIn is a check.
func runsIn(id string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if len(p.Status.ContainerStatuses) == 0 || !strings.HasSuffix(p.Status.ContainerStatuses[0].ContainerID, id) {
			return fmt.Sprintf("its container is not %s", id)
		}
		return ""
	}
}
