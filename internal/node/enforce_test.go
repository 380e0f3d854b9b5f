package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Run fails at the first reservation that cannot be enforced.
func TestRunFailsWhenReservationCannotBeEnforced(t *testing.T) {
	amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("1Gi")}
	var limited []string
	f := newFixture(t, nil, func(c *Config, d *Deps) {
		c.Reservations = []Reservation{
			{Name: "System Reserved", Cgroup: "/system", Amounts: amounts},
			{Name: "Kube Reserved", Cgroup: "/kube", Amounts: amounts, Compressible: true},
			{Name: "Kube Reserved", Cgroup: "/absent", Amounts: amounts},
		}
		d.EnforceReserved = func(cgroup string, amounts v1.ResourceList) error {
			if cgroup == "/absent" {
				return errors.New("no such cgroup")
			}
			_, memory := amounts[v1.ResourceMemory]
			limited = append(limited, fmt.Sprintf("%s cpu %s memory %v", cgroup, amounts.Cpu(), memory))
			return nil
		}
	})
	if err := f.Run(t.Context()); err == nil {
		t.Error("Run returned nil, want an error")
	}
	if diff := cmp.Diff([]string{"/system cpu 100m memory true", "/kube cpu 100m memory false"}, limited); diff != "" {
		t.Errorf("limited (-want +got):\n%s", diff)
	}
	want := []string{"Normal NodeAllocatableEnforced", "Normal NodeAllocatableEnforced", "Warning FailedNodeAllocatableEnforcement"}
	if events := f.events.take(); len(events) < 3 || !cmp.Equal(want, events[len(events)-3:]) {
		t.Errorf("events %q, want %q last", events, want)
	}
}
