package runtime

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The node's defaults apply to namespaces that the pod does not share with the host. The pod may
// override them.
func TestDefaultSysctls(t *testing.T) {
	r := &Runtime{cfg: Config{DefaultSysctls: map[string]string{
		"net/ipv4/ip_local_port_range": "1 2", "net.core.somaxconn": "3", "kernel.shmmax": "4", "fs.mqueue.msg_max": "5",
		"user.max_inotify_watches": "6", "kernel.domainname": "7", "kernel.shm": "8",
	}}}
	net := map[string]string{"net.ipv4.ip_local_port_range": "1 2", "net.core.somaxconn": "3", "kernel.domainname": "7"}
	ipc := map[string]string{"kernel.shmmax": "4", "fs.mqueue.msg_max": "5"}
	for _, test := range []struct {
		name string
		spec v1.PodSpec
		want []map[string]string
	}{
		{"pod with namespaces of its own", v1.PodSpec{}, []map[string]string{net, ipc}},
		{"host network", v1.PodSpec{HostNetwork: true}, []map[string]string{ipc}},
		{"host IPC", v1.PodSpec{HostIPC: true}, []map[string]string{net}},
		{"user namespace", v1.PodSpec{HostUsers: ptr.To(false)}, []map[string]string{net, ipc, {"user.max_inotify_watches": "6"}}},
		{"pod overrides a default", v1.PodSpec{SecurityContext: &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "kernel.shmmax", Value: "9"}}}},
			[]map[string]string{net, ipc, {"kernel.shmmax": "9"}}},
	} {
		want := map[string]string{}
		for _, part := range test.want {
			for k, v := range part {
				want[k] = v
			}
		}
		if diff := cmp.Diff(want, r.sysctls(&v1.Pod{Spec: test.spec})); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.name, diff)
		}
	}
}
