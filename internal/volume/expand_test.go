package volume

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/volume/plugin"
)

// growingDriver is a driver whose volumes can grow.
type growingDriver struct{ *driver }

func (d growingDriver) Expand(_ context.Context, r plugin.Request, at plugin.Result, size resource.Quantity) error {
	return d.note("expand " + size.String())
}

// TestVolumeGrowsWhileItIsUp: nobody tells a node that a claim's volume was made larger.
func TestVolumeGrowsWhileItIsUp(t *testing.T) {
	n := newNode(t)
	d := &driver{root: n.root}
	clock := clocktesting.NewFakeClock(time.Now())
	n.kinds, n.clock = []plugin.Plugin{growingDriver{d}}, clock
	n.restart()
	size := func(text string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceStorage: resource.MustParse(text)}
	}
	source := n.claimed(v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: "disk"}},
		func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			c.Status.Capacity, pv.Spec.Capacity = size("1Gi"), size("1Gi")
		})
	n.mount(n.podNamed("a", source))
	look := func() {
		t.Helper()
		waitFor(t, "somebody to wait", clock.HasWaiters)
		n.client.ClearActions()
		clock.Step(sizePeriod)
		waitFor(t, "the volume to be read", func() bool {
			for _, a := range n.client.Actions() {
				if a.Matches("get", "persistentvolumes") {
					return true
				}
			}
			return false
		})
	}
	look()
	if strings.Contains(d.called(), "expand") {
		t.Fatalf("expanded though it has its size: %s", d.called())
	}

	pv, err := n.client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pv = pv.DeepCopy()
	pv.Spec.Capacity = size("2Gi")
	if _, err := n.client.CoreV1().PersistentVolumes().Update(t.Context(), pv, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.fail("expand", errors.New("busy"))
	look()
	waitFor(t, "the failure to be told", func() bool {
		return n.events.has(`VolumeResizeFailed: MountVolume.NodeExpandVolume failed for volume "pv" : busy`)
	})
	d.fail("", nil)
	look()
	waitFor(t, "the success to be told", func() bool {
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
	waitFor(t, "nothing to be waited for", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		_, waits := n.due.first()
		return !waits
	})
}
