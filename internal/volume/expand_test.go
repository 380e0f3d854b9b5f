package volume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

// expandingDriver is a driver whose volumes can be expanded.
type expandingDriver struct{ *driver }

func (d expandingDriver) Expand(_ context.Context, r plugin.Request, at plugin.Result, size resource.Quantity) error {
	return d.record("expand " + size.String())
}

// expansionNode is a node with a claim of 1Gi whose volume can be expanded.
type expansionNode struct {
	*node
	d      *driver
	clock  *clocktesting.FakeClock
	source v1.VolumeSource
}

func newExpansionNode(t *testing.T) *expansionNode {
	n := newNode(t)
	g := &expansionNode{node: n, d: &driver{root: n.root}, clock: clocktesting.NewFakeClock(time.Now())}
	n.kinds, n.clock = []plugin.Plugin{expandingDriver{g.d}}, g.clock
	n.restart()
	g.source = n.claimed(v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: "disk"}},
		func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			c.Status.Capacity, pv.Spec.Capacity = sized("1Gi"), sized("1Gi")
		})
	return g
}

func sized(size string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
}

// nextSizeCheck advances the clock to the next check of the size and waits for its end.
func (g *expansionNode) nextSizeCheck() {
	g.t.Helper()
	poll.Until(g.t, "a timer", g.clock.HasWaiters)
	g.client.ClearActions()
	g.clock.Step(sizeCheckPeriod)
	poll.Until(g.t, "the volume to be read", func() bool { return g.requested("get", "persistentvolumes") })
	poll.Until(g.t, "the end of the check", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		_, waits := g.due.first()
		return waits
	})
}

// requested reports whether the API server got the request since the last check began.
func (g *expansionNode) requested(verb, resource string) bool {
	return slices.ContainsFunc(g.client.Actions(), func(a ktesting.Action) bool { return a.Matches(verb, resource) })
}

func (g *expansionNode) claim() *v1.PersistentVolumeClaim {
	g.t.Helper()
	c, err := g.client.CoreV1().PersistentVolumeClaims("ns").Get(g.t.Context(), "claim", metav1.GetOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return c.DeepCopy()
}

// enlarge is a fake of the controller: it sets the size of the PersistentVolume and changes the claim.
func (g *expansionNode) enlarge(size string, change func(*v1.PersistentVolumeClaim)) {
	g.t.Helper()
	pv, err := g.client.CoreV1().PersistentVolumes().Get(g.t.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	pv = pv.DeepCopy()
	pv.Spec.Capacity = sized(size)
	if _, err := g.client.CoreV1().PersistentVolumes().Update(g.t.Context(), pv, metav1.UpdateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	if change == nil {
		return
	}
	c := g.claim()
	change(c)
	if _, err := g.client.CoreV1().PersistentVolumeClaims("ns").UpdateStatus(g.t.Context(), c, metav1.UpdateOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

// TestVolumeIsExpandedOnEveryNode: another node has expanded the volume first and updated the claim.
func TestVolumeIsExpandedOnEveryNode(t *testing.T) {
	g := newExpansionNode(t)
	g.mount(g.podNamed("a", g.source))
	g.enlarge("2Gi", func(c *v1.PersistentVolumeClaim) { c.Status.Capacity = sized("2Gi") })
	g.nextSizeCheck()
	if strings.Count(g.d.called(), "expand 2Gi") != 1 {
		t.Errorf("called: %s, want one expansion", g.d.called())
	}
	if g.requested("patch", "persistentvolumeclaims") {
		t.Error("the claim was written though it has the size")
	}
	g.mount(g.podNamed("b", g.source))
	g.nextSizeCheck()
	if strings.Count(g.d.called(), "expand") != 1 {
		t.Errorf("called: %s, want no second expansion", g.d.called())
	}
}

// TestMountedVolumeIsExpanded by the periodic check.
func TestMountedVolumeIsExpanded(t *testing.T) {
	g := newExpansionNode(t)
	n, d := g.node, g.d
	n.mount(n.podNamed("a", g.source))
	g.nextSizeCheck()
	if strings.Contains(d.called(), "expand") {
		t.Fatalf("expanded though it has its size: %s", d.called())
	}

	g.enlarge("2Gi", nil)
	d.fail("expand", errors.New("busy"))
	g.nextSizeCheck()
	poll.Until(t, "the failure event", func() bool {
		return n.events.has(`VolumeResizeFailed: MountVolume.NodeExpandVolume failed for volume "pv" : busy`)
	})
	d.fail("", nil)
	g.nextSizeCheck()
	poll.Until(t, "the success event", func() bool {
		return n.events.has(`FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv"`)
	})
	claims, err := n.client.CoreV1().PersistentVolumeClaims("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 1 || claims.Items[0].Status.Capacity.Storage().String() != "2Gi" {
		t.Errorf("the claim shows %+v %v", claims, err)
	}
	if strings.Count(d.called(), "publish") != 1 {
		t.Errorf("published again for a size check: %s", d.called())
	}
	n.unmount("a")
	poll.Until(t, "no scheduled check", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		_, waits := n.due.first()
		return !waits
	})
}

// TestResizeStatus: the status of the claim and the number of attempts, by the state of the controller
// and the driver's error.
func TestResizeStatus(t *testing.T) {
	pending, under, infeasible := v1.PersistentVolumeClaimNodeResizePending, v1.PersistentVolumeClaimNodeResizeInProgress, v1.PersistentVolumeClaimNodeResizeInfeasible
	answer := errors.New("no")
	for _, c := range []struct {
		name      string
		state     v1.ClaimResourceStatus // initial
		requested string                 // new request, if any
		fail      error
		checks    int
		tries     int
		then      v1.ClaimResourceStatus
		size      string
		error     bool // has an error condition
	}{
		{name: "node resize pending", state: pending, checks: 2, tries: 1, size: "2Gi"},
		{name: "node resize in progress", state: under, checks: 2, tries: 1, size: "2Gi"},
		{name: "controller resize in progress", state: v1.PersistentVolumeClaimControllerResizeInProgress, checks: 2,
			then: v1.PersistentVolumeClaimControllerResizeInProgress, size: "1Gi"},
		{name: "already infeasible", state: infeasible, checks: 2, then: infeasible, size: "1Gi"},
		{name: "driver reports infeasible", state: pending, fail: plugin.WithClass(answer, plugin.ErrInfeasible), checks: 3, tries: 1,
			then: infeasible, size: "1Gi", error: true},
		{name: "driver fails", state: pending, fail: answer, checks: 2, tries: 2, then: under, size: "1Gi", error: true},
		{name: "driver fails and request was changed", state: pending, requested: "1500Mi", fail: answer, checks: 3, tries: 2,
			then: infeasible, size: "1Gi", error: true},
		{name: "driver result uncertain", state: pending, fail: plugin.WithClass(answer, plugin.ErrUncertain), checks: 2, tries: 2, then: under, size: "1Gi"},
		{name: "driver reports in use", state: pending, fail: plugin.WithClass(answer, plugin.ErrInUse), checks: 3, tries: 1,
			then: under, size: "1Gi", error: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newExpansionNode(t)
			g.mount(g.podNamed("a", g.source))
			g.enlarge("2Gi", func(claim *v1.PersistentVolumeClaim) {
				claim.Spec.Resources.Requests = sized(cmp.Or(c.requested, "2Gi"))
				claim.Status.AllocatedResources = sized("2Gi")
				claim.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: c.state}
				claim.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: "Foreign"}, {Type: v1.PersistentVolumeClaimFileSystemResizePending}}
			})
			g.d.fail("expand", c.fail)
			for range c.checks {
				g.nextSizeCheck()
			}
			if got := strings.Count(g.d.called(), "expand"); got != c.tries {
				t.Errorf("%d attempts, want %d", got, c.tries)
			}
			status := g.claim().Status
			if got := status.AllocatedResourceStatuses[v1.ResourceStorage]; got != c.then {
				t.Errorf("the claim has %q, want %q", got, c.then)
			}
			if got := status.Capacity.Storage().String(); got != c.size {
				t.Errorf("the claim has %s, want %s", got, c.size)
			}
			var conditions []string
			for _, condition := range status.Conditions {
				conditions = append(conditions, strings.TrimSpace(string(condition.Type)+" "+condition.Message))
			}
			slices.Sort(conditions)
			want := []string{"FileSystemResizePending", "Foreign"}
			if c.size == "2Gi" {
				want = want[1:]
			}
			if c.error {
				want = append(want, "NodeResizeError failed to expand pvc with no")
			}
			if !slices.Equal(conditions, want) {
				t.Errorf("conditions %q, want %q", conditions, want)
			}
		})
	}
}

// TestInfeasibleExpansionDoesNotBlockMount: the pod starts with the old size.
func TestInfeasibleExpansionDoesNotBlockMount(t *testing.T) {
	for name, class := range map[string]error{"infeasible": plugin.ErrInfeasible, "in use": plugin.ErrInUse} {
		t.Run(name, func(t *testing.T) {
			g := newExpansionNode(t)
			g.enlarge("2Gi", func(claim *v1.PersistentVolumeClaim) {
				claim.Status.AllocatedResources = sized("2Gi")
				claim.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizePending}
			})
			g.d.fail("expand", plugin.WithClass(errors.New("no"), class))
			done := make(chan error)
			p := g.podNamed("a", g.source)
			go func() { _, err := g.Mount(t.Context(), p); done <- err }()
			for {
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
					return
				case <-time.After(time.Millisecond):
					if g.d.called() != "" {
						g.clock.Step(time.Second / 2)
					}
				}
			}
		})
	}
}
