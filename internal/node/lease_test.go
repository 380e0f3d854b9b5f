package node

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

// Jitter spreads the renewals of nodes that start at the same time.
func TestLeaseRenewalHasJitter(t *testing.T) {
	for name, tt := range map[string]struct {
		jitter float64
		want   time.Duration // from creation to the first renewal
	}{
		"least_jitter":  {0, 20 * time.Second},
		"medium_jitter": {0.5, 20400 * time.Millisecond},
		"most_jitter":   {0.999, 20799200 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, fake.NewClientset(), func(_ *Config, d *Deps) { d.Jitter = func() float64 { return tt.jitter } })
				synctest.Wait()
				created := f.lease(t).Spec.RenewTime.Time
				time.Sleep(21 * time.Second)
				synctest.Wait()
				if got := f.lease(t).Spec.RenewTime.Sub(created); got != tt.want {
					t.Errorf("renewed after %v, want %v", got, tt.want)
				}
			})
		})
	}
}
