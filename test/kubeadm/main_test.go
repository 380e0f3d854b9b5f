package kubeadm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"swiftlet/test/bed"
)

// kubelet is the kubelet of the control plane's node and of one worker. The other worker has the
// reference kubelet.
var kubelet = bed.KubeletKind(cmp.Or(os.Getenv("SWIFTLET_BED_KUBELET"), string(bed.Ours)))

// timeout is far longer than anything takes that is not said to take longer.
const timeout = 2 * time.Minute

// cluster is a cluster that kubeadm sets up.
type cluster struct {
	bed      *bed.Bed
	programs *Programs
	control  *Machine
	// beside has the reference kubelet; own has the one under test.
	beside, own *Machine

	client     kubernetes.Interface // of the administrator, after init
	kubeconfig string
}

// TestKubeadm sets a cluster up and operates it, step by step. Later steps need the pods of earlier ones.
func TestKubeadm(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	c := newCluster(t)
	if !c.step(t, "init", c.testInit) {
		return
	}
	c.approveServing(t)
	if !c.step(t, "join", c.testJoin) {
		return
	}
	c.step(t, "static pods of the control plane", c.testControlPlane)
	c.step(t, "addons", c.testAddons)
	c.step(t, "pods have the same status on both nodes", c.testPods)
	c.step(t, "services, names, logs and exec", c.testAccess)
	c.step(t, "upgrade node", c.testUpgrade)
	c.step(t, "replace the reference kubelet", c.testReplace)
	c.step(t, "certificates rotate", c.testRotation)
	c.step(t, "reset and join again", c.testReset)
}

// step runs a part of the test and logs the time it takes.
func (c *cluster) step(t *testing.T, name string, do func(*testing.T)) bool {
	began := time.Now()
	defer func() { t.Logf("%s: %.1f s", name, time.Since(began).Seconds()) }()
	return t.Run(name, do)
}

// newCluster prepares the machines. They are removed when the test ends, also by an interrupt.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	programs, err := FindPrograms(ctx, t.Output(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bed.StartNetwork(ctx, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.ShowLogs(t)
	c := &cluster{bed: b, programs: programs}
	archives, err := programs.Images(ctx, b.PauseProgram())
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	add := func(m **Machine, name string, kind bed.KubeletKind) {
		group.Go(func() (err error) {
			*m, err = addMachine(ctx, b, programs, name, kind, archives)
			return err
		})
	}
	add(&c.control, "control", kubelet)
	add(&c.beside, "worker-reference", bed.Reference)
	add(&c.own, "worker-own", kubelet)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) workers() []*Machine  { return []*Machine{c.beside, c.own} }
func (c *cluster) machines() []*Machine { return []*Machine{c.control, c.beside, c.own} }

// connect makes the administrator's client from the file that kubeadm wrote.
func (c *cluster) connect() (err error) {
	c.kubeconfig = c.control.Path("/etc/kubernetes/admin.conf")
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

// kubectl runs the command as the administrator.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs.Reference, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+c.programs.Work)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %v: %w: %s", args, err, out)
	}
	return string(out), nil
}

// eventually calls check until it returns "". After the limit the test fails with its last result.
func eventually(t *testing.T, limit time.Duration, check func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", limit, missing)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
