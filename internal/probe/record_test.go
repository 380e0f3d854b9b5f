package probe

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"swiftlet/internal/why"
)

func TestClassOfFailure(t *testing.T) {
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(sick.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused.Close()
	httpGet := func(address string) v1.ProbeHandler {
		return v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromInt(portAt(t, address))}}
	}
	for name, c := range map[string]struct {
		handler v1.ProbeHandler
		want    why.Class
	}{
		"HTTP status":   {httpGet(sick.Listener.Addr().String()), why.ProbeFailed},
		"HTTP refused":  {httpGet(unused.Addr().String()), why.ProbeRefused},
		"HTTP silent":   {httpGet(silent.Addr().String()), why.ProbeNoReply},
		"TCP refused":   {v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(portAt(t, unused.Addr().String()))}}, why.ProbeRefused},
		"gRPC silent":   {v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(portAt(t, silent.Addr().String()))}}, why.ProbeNoReply},
		"bad port":      {v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("none")}}, why.ProbeError},
		"no such probe": {v1.ProbeHandler{}, why.ProbeError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := check(t, Target{Pod: &v1.Pod{}, Container: &v1.Container{}, PodIP: "127.0.0.1", Probe: &v1.Probe{ProbeHandler: c.handler, TimeoutSeconds: 1}})
			if got.Class != c.want {
				t.Errorf("%q, want %q: %s", got.Class, c.want, got.Output)
			}
		})
	}
}
