package node

import (
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAddressesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan []v1.NodeAddress, 8)
		var at atomic.Value
		at.Store("192.0.2.2")
		f := newFixture(t, fake.NewClientset(), func(_ *Config, deps *Deps) {
			deps.Addressed = func(a []v1.NodeAddress) { told <- a }
		})
		f.network.own = func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.ParseIP(at.Load().(string))}}, nil
		}
		f.network.byRoute = func(net.IP) (net.IP, error) { return net.ParseIP(at.Load().(string)), nil }
		f.run(t)
		of := func(ip string) []v1.NodeAddress {
			return []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}, {Type: v1.NodeHostName, Address: "node-1"}}
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n, first := len(told), <-told; n != 1 || !slices.Equal(first, of("192.0.2.2")) {
			t.Fatalf("told %d times, first %v", n, first)
		}
		at.Store("192.0.2.3")
		time.Sleep(2 * addressesFor)
		synctest.Wait()
		if n, next := len(told), <-told; n != 1 || !slices.Equal(next, of("192.0.2.3")) {
			t.Errorf("told %d times, first %v", n, next)
		}
	})
}
