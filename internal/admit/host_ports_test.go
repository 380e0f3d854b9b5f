package admit

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/test/cputime"
)

// A pod may have tens of thousands of ports, and the sync loop, which serves all pods, compares them with those of
// the others.
func TestManyHostPortsAreComparedQuickly(t *testing.T) {
	const many = 30000
	withPorts := func(first int32) *v1.Pod {
		c := v1.Container{}
		for n := range int32(many) {
			c.Ports = append(c.Ports, v1.ContainerPort{HostPort: first + n, Protocol: v1.ProtocolTCP})
		}
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{c}}}
	}
	p, other := withPorts(1), withPorts(many+1)
	cputime.AtMost(t, 2*time.Second, func() {
		if m := hostPorts(p, nil, []*v1.Pod{other, other}); m != nil {
			t.Errorf("%v", m)
		}
	})
	if m := hostPorts(p, nil, []*v1.Pod{other, withPorts(many)}); m == nil {
		t.Error("a conflict of one port was not found")
	}
}
