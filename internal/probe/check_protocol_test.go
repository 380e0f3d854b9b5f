package probe

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"swiftlet/internal/pod"
)

// A server with only unencrypted HTTP/2 passes only if the probe has that protocol.
func TestHTTP2WithoutTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.Protocols = unencryptedHTTP2()
	server.Start()
	defer server.Close()
	port := intstr.FromInt(portAt(t, server.Listener.Addr().String()))
	for protocol, want := range map[*v1.HTTPProtocol]pod.Result{nil: pod.Failed, ptr.To(v1.HTTPProtocolHTTP2): pod.Passed} {
		get := &v1.HTTPGetAction{Port: port, Protocol: protocol}
		if got := check(t, Target{Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: get}}}); got.Result != want {
			t.Errorf("protocol %v: %v %q, want %v", ptr.Deref(protocol, "default"), got.Result, got.Output, want)
		}
	}
}

func TestGRPCOverTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	owner := httptest.NewTLSServer(nil) // for its certificate
	owner.Close()
	serveHealth(t, l, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: owner.TLS.Certificates})))
	port := int32(portAt(t, l.Addr().String()))
	for mode, want := range map[*v1.GRPCProbeMode]pod.Result{nil: pod.Failed, ptr.To(v1.GRPCProbeModeTLS): pod.Passed} {
		action := &v1.GRPCAction{Port: port, Mode: mode}
		if got := check(t, Target{Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: action}}}); got.Result != want {
			t.Errorf("mode %v: %v %q, want %v", ptr.Deref(mode, "default"), got.Result, got.Output, want)
		}
	}
}
