package node

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

// Nodes that begin to renew at the same moment do not go on in step.
func TestLeaseRenewalsAreSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		jitter float64
		want   time.Duration // after the lease was made
	}{
		"shortest": {0, 20 * time.Second},
		"middle":   {0.5, 20400 * time.Millisecond},
		"longest":  {0.999, 20799200 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, fake.NewClientset(), func(_ *Config, d *Deps) { d.Jitter = func() float64 { return tt.jitter } })
				synctest.Wait()
				made := f.lease(t).Spec.RenewTime.Time
				time.Sleep(21 * time.Second)
				synctest.Wait()
				if got := f.lease(t).Spec.RenewTime.Sub(made); got != tt.want {
					t.Errorf("second renewal after %v, want %v", got, tt.want)
				}
			})
		})
	}
}
