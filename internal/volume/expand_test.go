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

// growingDriver is a driver whose volumes can grow.
type growingDriver struct{ *driver }

func (d growingDriver) Expand(_ context.Context, r plugin.Request, at plugin.Result, size resource.Quantity) error {
	return d.note("expand " + size.String())
}

// growth is a node with a claim of 1Gi whose volume can grow.
type growth struct {
	*node
	d      *driver
	clock  *clocktesting.FakeClock
	source v1.VolumeSource
}

func newGrowth(t *testing.T) *growth {
	n := newNode(t)
	g := &growth{node: n, d: &driver{root: n.root}, clock: clocktesting.NewFakeClock(time.Now())}
	n.kinds, n.clock = []plugin.Plugin{growingDriver{g.d}}, g.clock
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

// look has the node look at the volume's size.
func (g *growth) look() {
	g.t.Helper()
	poll.Until(g.t, "somebody to wait", g.clock.HasWaiters)
	g.client.ClearActions()
	g.clock.Step(sizePeriod)
	poll.Until(g.t, "the volume to be read", func() bool { return g.asked("get", "persistentvolumes") })
	poll.Until(g.t, "the look to end", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		_, waits := g.due.first()
		return waits
	})
}

// asked reports whether the API server was asked for that since the last look began.
func (g *growth) asked(verb, resource string) bool {
	return slices.ContainsFunc(g.client.Actions(), func(a ktesting.Action) bool { return a.Matches(verb, resource) })
}

func (g *growth) claim() *v1.PersistentVolumeClaim {
	g.t.Helper()
	c, err := g.client.CoreV1().PersistentVolumeClaims("ns").Get(g.t.Context(), "claim", metav1.GetOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return c.DeepCopy()
}

// enlarge is what a controller does: the volume gets the size, the claim's status what
// change makes of it.
func (g *growth) enlarge(size string, change func(*v1.PersistentVolumeClaim)) {
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

// TestVolumeGrowsOnEveryNode: the first node that has the volume grow shows it in the claim,
// and all others have to follow.
func TestVolumeGrowsOnEveryNode(t *testing.T) {
	g := newGrowth(t)
	g.mount(g.podNamed("a", g.source))
	g.enlarge("2Gi", func(c *v1.PersistentVolumeClaim) { c.Status.Capacity = sized("2Gi") })
	g.look()
	if strings.Count(g.d.called(), "expand 2Gi") != 1 {
		t.Errorf("called: %s, want it to grow", g.d.called())
	}
	if g.asked("patch", "persistentvolumeclaims") {
		t.Error("the claim was written though it shows the size")
	}
	g.mount(g.podNamed("b", g.source))
	g.look()
	if strings.Count(g.d.called(), "expand") != 1 {
		t.Errorf("called: %s, want it to grow once", g.d.called())
	}
}

// TestVolumeGrowsWhileItIsUp: nobody tells a node that a claim's volume was made larger.
func TestVolumeGrowsWhileItIsUp(t *testing.T) {
	g := newGrowth(t)
	n, d := g.node, g.d
	n.mount(n.podNamed("a", g.source))
	g.look()
	if strings.Contains(d.called(), "expand") {
		t.Fatalf("expanded though it has its size: %s", d.called())
	}

	g.enlarge("2Gi", nil)
	d.fail("expand", errors.New("busy"))
	g.look()
	poll.Until(t, "the failure to be told", func() bool {
		return n.events.has(`VolumeResizeFailed: MountVolume.NodeExpandVolume failed for volume "pv" : busy`)
	})
	d.fail("", nil)
	g.look()
	poll.Until(t, "the success to be told", func() bool {
		return n.events.has(`FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv"`)
	})
	claims, err := n.client.CoreV1().PersistentVolumeClaims("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 1 || claims.Items[0].Status.Capacity.Storage().String() != "2Gi" {
		t.Errorf("the claim shows %+v %v", claims, err)
	}
	if strings.Count(d.called(), "publish") != 1 {
		t.Errorf("published again to look at a size: %s", d.called())
	}
	n.unmount("a")
	poll.Until(t, "nothing to be waited for", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		_, waits := n.due.first()
		return !waits
	})
}

// TestGrowthIsToldToTheController: what the claim shows of its growth, and whether it is
// tried, by what the controller and the driver say.
func TestGrowthIsToldToTheController(t *testing.T) {
	pending, under, infeasible := v1.PersistentVolumeClaimNodeResizePending, v1.PersistentVolumeClaimNodeResizeInProgress, v1.PersistentVolumeClaimNodeResizeInfeasible
	answer := errors.New("no")
	for _, c := range []struct {
		name  string
		state v1.ClaimResourceStatus // at first
		asked string                 // by the owner, since
		fail  error
		looks int
		tries int
		then  v1.ClaimResourceStatus
		size  string
		error bool // shown as a condition
	}{
		{name: "pending", state: pending, looks: 2, tries: 1, size: "2Gi"},
		{name: "begun before", state: under, looks: 2, tries: 1, size: "2Gi"},
		{name: "the controller is not done", state: v1.PersistentVolumeClaimControllerResizeInProgress, looks: 2,
			then: v1.PersistentVolumeClaimControllerResizeInProgress, size: "1Gi"},
		{name: "found infeasible before", state: infeasible, looks: 2, then: infeasible, size: "1Gi"},
		{name: "infeasible", state: pending, fail: plugin.WithClass(answer, plugin.ErrInfeasible), looks: 3, tries: 1,
			then: infeasible, size: "1Gi", error: true},
		{name: "failed", state: pending, fail: answer, looks: 2, tries: 2, then: under, size: "1Gi", error: true},
		{name: "failed, and less is asked for", state: pending, asked: "1500Mi", fail: answer, looks: 3, tries: 2,
			then: infeasible, size: "1Gi", error: true},
		{name: "perhaps", state: pending, fail: plugin.WithClass(answer, plugin.ErrUncertain), looks: 2, tries: 2, then: under, size: "1Gi"},
		{name: "not while in use", state: pending, fail: plugin.WithClass(answer, plugin.ErrInUse), looks: 3, tries: 1,
			then: under, size: "1Gi", error: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGrowth(t)
			g.mount(g.podNamed("a", g.source))
			g.enlarge("2Gi", func(claim *v1.PersistentVolumeClaim) {
				claim.Spec.Resources.Requests = sized(cmp.Or(c.asked, "2Gi"))
				claim.Status.AllocatedResources = sized("2Gi")
				claim.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: c.state}
				claim.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: "Foreign"}, {Type: v1.PersistentVolumeClaimFileSystemResizePending}}
			})
			g.d.fail("expand", c.fail)
			for range c.looks {
				g.look()
			}
			if got := strings.Count(g.d.called(), "expand"); got != c.tries {
				t.Errorf("tried %d times, want %d", got, c.tries)
			}
			status := g.claim().Status
			if got := status.AllocatedResourceStatuses[v1.ResourceStorage]; got != c.then {
				t.Errorf("the claim shows %q, want %q", got, c.then)
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

// TestInfeasibleGrowthKeepsNoPod: the pod comes up with what there is.
func TestInfeasibleGrowthKeepsNoPod(t *testing.T) {
	for name, class := range map[string]error{"infeasible": plugin.ErrInfeasible, "in use": plugin.ErrInUse} {
		t.Run(name, func(t *testing.T) {
			g := newGrowth(t)
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
