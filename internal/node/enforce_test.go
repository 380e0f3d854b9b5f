package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A reservation that cannot be enforced ends the node; those before it stand.
func TestReservationsAreEnforced(t *testing.T) {
	kept := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("1Gi")}
	var bounded []string
	f := newFixture(t, nil, func(c *Config, d *Deps) {
		c.Reservations = []Reservation{
			{Name: "System Reserved", Group: "/system", Amounts: kept},
			{Name: "Kube Reserved", Group: "/kube", Amounts: kept, Compressible: true},
			{Name: "Kube Reserved", Group: "/absent", Amounts: kept},
		}
		d.EnforceReserved = func(group string, amounts v1.ResourceList) error {
			if group == "/absent" {
				return errors.New("no such group")
			}
			_, memory := amounts[v1.ResourceMemory]
			bounded = append(bounded, fmt.Sprintf("%s cpu %s memory %v", group, amounts.Cpu(), memory))
			return nil
		}
	})
	if err := f.Run(t.Context()); err == nil {
		t.Error("the node runs")
	}
	if diff := cmp.Diff([]string{"/system cpu 100m memory true", "/kube cpu 100m memory false"}, bounded); diff != "" {
		t.Errorf("bounded (-want +got):\n%s", diff)
	}
	want := []string{"Normal NodeAllocatableEnforced", "Normal NodeAllocatableEnforced", "Warning FailedNodeAllocatableEnforcement"}
	if events := f.events.take(); len(events) < 3 || !cmp.Equal(want, events[len(events)-3:]) {
		t.Errorf("events %q, want %q last", events, want)
	}
}
