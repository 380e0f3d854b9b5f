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

func TestAddressesChangedIsCalledOncePerChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan []v1.NodeAddress, 8)
		var ip atomic.Value
		ip.Store("192.0.2.2")
		f := newFixture(t, fake.NewClientset(), func(_ *Config, deps *Deps) {
			deps.AddressesChanged = func(a []v1.NodeAddress) { calls <- a }
		})
		f.network.interfaceAddrs = func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.ParseIP(ip.Load().(string))}}, nil
		}
		f.network.defaultRouteIP = func(net.IP) (net.IP, error) { return net.ParseIP(ip.Load().(string)), nil }
		f.run(t)
		addresses := func(ip string) []v1.NodeAddress {
			return []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}, {Type: v1.NodeHostName, Address: "node-1"}}
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n, first := len(calls), <-calls; n != 1 || !slices.Equal(first, addresses("192.0.2.2")) {
			t.Fatalf("called %d times, first with %v; want once", n, first)
		}
		ip.Store("192.0.2.3")
		time.Sleep(2 * addressesTTL)
		synctest.Wait()
		if n, next := len(calls), <-calls; n != 1 || !slices.Equal(next, addresses("192.0.2.3")) {
			t.Errorf("called %d times, first with %v; want once", n, next)
		}
	})
}
