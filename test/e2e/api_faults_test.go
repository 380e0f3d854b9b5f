package e2e

import (
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"swiftlet/test/apifaults"
	"swiftlet/test/bed"
)

// apiFault is a fault of the API server, or of the way to it.
type apiFault struct {
	name  string
	fault apifaults.Fault
	// begin and end are called with the fault; each may be nil.
	begin, end func(*faultyAPI, *testing.T)
	short      bool // part of the short form
}

// apiFaults are the faults of TestAPIServerFaults.
func apiFaults() []apiFault {
	var token atomic.Value
	token.Store("first")
	return []apiFault{
		{name: "429 with Retry-After", fault: apifaults.TooManyRequests(time.Second)},
		{name: "500", fault: apifaults.Failing(http.StatusInternalServerError)},
		{name: "503", fault: apifaults.Failing(http.StatusServiceUnavailable)},
		{name: "502 of a load balancer", fault: apifaults.FailingGateway},
		{name: "403", fault: apifaults.Failing(http.StatusForbidden)},
		{name: "no response", fault: apifaults.Hanging},
		{name: "connections cut", fault: apifaults.Cutting},
		{name: "410 to watches", fault: apifaults.GoneWatches},
		{name: "watches end with 410", fault: apifaults.ExpiredWatches, short: true},
		{name: "slow watches", fault: apifaults.SlowWatches(200 * time.Millisecond)},
		{name: "expired token", fault: apifaults.RequireToken(func() string { return token.Load().(string) }),
			begin: func(*faultyAPI, *testing.T) { token.Store("second") },
			end: func(f *faultyAPI, t *testing.T) {
				write(t, f.node.Path(faultyToken), []byte("second"))
				f.proxy.Set(apifaults.RequireToken(func() string { return "second" })) // the new token is needed from here on
			}},
		{name: "certificate replaced", begin: (*faultyAPI).replaceCertificate},
		{name: "authority replaced", begin: (*faultyAPI).replaceAuthority, end: (*faultyAPI).trustAuthority},
		{name: "unknown fields", fault: apifaults.Rewriting("pods", addUnknownFields)},
		{name: "node with unknown and invalid values", fault: apifaults.Rewriting("nodes", spoilNode)},
		{name: "pods with invalid values", fault: apifaults.Rewriting("pods", spoilPod),
			begin: (*faultyAPI).createSpoiled, end: (*faultyAPI).deleteSpoiled, short: true},
		{name: "two nodes of one name", begin: (*faultyAPI).startTwin, end: (*faultyAPI).stopTwin},
	}
}

// TestAPIServerFaults injects faults between a node and the API server. The agent and the pods keep
// running, the API server has the right status within 30 s after each fault, and the number of requests
// is bounded. SWIFTLET_API_FAULTS=all runs all of them, each for 20 s or
// for the duration that is given instead.
func TestAPIServerFaults(t *testing.T) {
	t.Parallel()
	lasts, all := faultDuration(t, "SWIFTLET_API_FAULTS")
	f := newFaultyAPI(t)
	for _, fault := range apiFaults() {
		if fault.short || all {
			t.Run(fault.name, func(t *testing.T) {
				survived := f.inject(t, fault, lasts)
				f.counted.Fault(survived && !t.Failed())
			})
		}
	}
	f.countLost(t)
}

const (
	faultyToken = "/etc/kubernetes/token"
	faultyCA    = "/etc/kubernetes/pki/api-server-ca.crt"
	// faultyRequests bounds the requests of an agent that meets a fault: at once, and per second. It has
	// about ten watches.
	faultyRequests, faultyRate = 60, 25
)

// faultyAPI is a node that reaches the API server through a proxy that injects faults.
type faultyAPI struct {
	*faultyNode
	host      string // the proxy's address
	proxy     *apifaults.Proxy
	authority *apifaults.Authority
	direct    []byte // the kubeconfig without the proxy
	twin      *bed.Box
}

func newFaultyAPI(t *testing.T) *faultyAPI {
	t.Helper()
	f := &faultyAPI{faultyNode: newFaultyNode(t, "faulty", "api-server")}
	f.connect(t)
	f.start(t, "contentType: application/json")
	return f
}

// connect starts the proxy and makes the node use it.
func (f *faultyAPI) connect(t *testing.T) {
	t.Helper()
	file := f.node.Path("/etc/kubernetes/kubelet.kubeconfig")
	var err error
	if f.direct, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	node, err := clientcmd.RESTConfigFromKubeConfig(f.direct)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(node.Host)
	if err != nil {
		t.Fatal(err)
	}
	f.host = server.Hostname()
	if f.authority, err = apifaults.NewAuthority(); err != nil {
		t.Fatal(err)
	}
	certificate, err := f.authority.Issue(f.host)
	if err != nil {
		t.Fatal(err)
	}
	if f.proxy, err = apifaults.Start(f.host, node, certificate); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.Load(f.direct)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData, c.CertificateAuthority = f.proxy.URL(), nil, faultyCA
	}
	for _, user := range config.AuthInfos {
		user.TokenFile = faultyToken
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, text)
	write(t, f.node.Path(faultyCA), f.authority.PEM())
	write(t, f.node.Path(faultyToken), []byte("first"))
}

// inject injects one fault. Meanwhile a pod changes its readiness, and another is created.
func (f *faultyAPI) inject(t *testing.T, fault apiFault, lasts time.Duration) (survived bool) {
	t.Helper()
	f.proxy.Requests()
	if fault.begin != nil {
		fault.begin(f, t)
	}
	f.proxy.Set(fault.fault)
	late := f.disturb(t)
	time.Sleep(lasts)
	requests := f.proxy.Requests()
	f.proxy.Set(nil)
	if fault.end != nil {
		fault.end(f, t)
	}
	ended := time.Now()
	missing := waitFor(timeoutFor(timeout, 4*timeout), func() string { return f.missing(t, late) })
	total := 0
	for _, n := range requests {
		total += n
	}
	t.Logf("%d requests in %v of %s: %v; converged after %v", total, lasts, fault.name, requests, time.Since(ended).Round(10*time.Millisecond))
	if missing != "" {
		t.Errorf("%v after %s:\n%s", timeout, fault.name, missing)
	}
	if most := faultyRequests + int(faultyRate*lasts.Seconds()); total > most && kubelet == bed.Ours {
		t.Errorf("%d requests in %v of %s, want at most %d: %v", total, lasts, fault.name, most, requests)
	}
	f.proxy.Set(nil)
	return missing == ""
}
