package node

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAddressesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told [][]v1.NodeAddress
		f := start(t, fake.NewClientset(), func(_ *Config, deps *Deps) {
			deps.Addressed = func(a []v1.NodeAddress) { told = append(told, a) }
		})
		of := func(ip string) []v1.NodeAddress {
			return []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: ip}, {Type: v1.NodeHostName, Address: "node-1"}}
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(told) != 1 || !slices.Equal(told[0], of("192.0.2.2")) {
			t.Fatalf("told %v", told)
		}
		f.network = fakeNetwork([]string{"192.0.2.3"}, nil, "192.0.2.3")
		time.Sleep(2 * addressesFor)
		synctest.Wait()
		if len(told) != 2 || !slices.Equal(told[1], of("192.0.2.3")) {
			t.Errorf("told %v", told)
		}
	})
}
