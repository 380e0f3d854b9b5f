package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"swiftlet/test/apifaults"
	"swiftlet/test/bed"
	"swiftlet/test/trust/tally"
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
	lasts, all := time.Second, os.Getenv("SWIFTLET_API_FAULTS")
	if all == "all" {
		lasts = 20 * time.Second
	} else if all != "" {
		var err error
		if lasts, err = time.ParseDuration(all); err != nil {
			t.Fatal(err)
		}
	}
	f := newFaultyAPI(t)
	for _, fault := range apiFaults() {
		if fault.short || all != "" {
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
	faultyReady = "/etc/kubernetes/flags/ready"
	// faultyRequests bounds the requests of an agent that meets a fault: at once, and per second. It has
	// about ten watches.
	faultyRequests, faultyRate = 60, 25
)

// faultyAPI is a node that reaches the API server through a proxy that injects faults.
type faultyAPI struct {
	node      *bed.Box
	space     string
	host      string // the proxy's address
	proxy     *apifaults.Proxy
	authority *apifaults.Authority
	direct    []byte // the kubeconfig without the proxy
	twin      *bed.Box
	counted   *tally.Tally

	agentStart float64
	steady     string // container of the pod that nothing should restart
	isReady    bool   // what the probed pod should be
	injected   int
}

func newFaultyAPI(t *testing.T) *faultyAPI {
	t.Helper()
	f := &faultyAPI{node: bareNode(t, "faulty"), space: clearedNamespace(t), counted: tally.New(t, "api-server"), isReady: true}
	f.connect(t)
	if err := os.MkdirAll(f.node.Path("/etc/kubernetes/flags"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.setReady(t, true)
	startKubelet(t, f.node, "contentType: application/json")
	f.agentStart = valueOf(scrape(t, f.node), "process_start_time_seconds{}")
	steady := startPod(t, f.space, sleeper("steady", f.node.Name()))
	f.steady = steady.Status.ContainerStatuses[0].ContainerID
	probed := sleeper("probed", f.node.Name())
	probed.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/flags/ready"}}}}
	probed.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "flags", MountPath: "/flags"}}
	probed.Spec.Volumes = []corev1.Volume{{Name: "flags", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/kubernetes/flags"}}}}
	startPod(t, f.space, probed)
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

func (f *faultyAPI) setReady(t *testing.T, ready bool) {
	t.Helper()
	if f.isReady = ready; ready {
		write(t, f.node.Path(faultyReady), nil)
	} else if err := os.Remove(f.node.Path(faultyReady)); err != nil {
		t.Fatal(err)
	}
}

// inject injects one fault. Meanwhile a pod changes its readiness, and another is created.
func (f *faultyAPI) inject(t *testing.T, fault apiFault, lasts time.Duration) (survived bool) {
	t.Helper()
	f.proxy.Requests()
	if fault.begin != nil {
		fault.begin(f, t)
	}
	f.proxy.Set(fault.fault)
	f.setReady(t, !f.isReady)
	f.injected++
	late := fmt.Sprintf("late-%d", f.injected)
	create(t, f.space, sleeper(late, f.node.Name()))
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

// missing lists what is not as it should be.
func (f *faultyAPI) missing(t *testing.T, late string) string {
	t.Helper()
	var lines []string
	add := func(text string) {
		if text != "" {
			lines = append(lines, text)
		}
	}
	pod := func(name string) *corev1.Pod {
		p, err := client().CoreV1().Pods(f.space).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			add(err.Error())
			return nil
		}
		return p
	}
	if steady := pod("steady"); steady != nil {
		add(ready(steady))
		if got := steady.Status.ContainerStatuses[0]; got.ContainerID != f.steady || got.RestartCount != 0 {
			add(fmt.Sprintf("steady: container %s after %d restarts, want %s", got.ContainerID, got.RestartCount, f.steady))
		}
	}
	if probed := pod("probed"); probed != nil && (ready(probed) == "") != f.isReady {
		add(fmt.Sprintf("probed: ready is not %t", f.isReady))
	}
	if p := pod(late); p != nil && ready(p) != "" {
		add(late + ": " + ready(p))
	}
	node, err := client().CoreV1().Nodes().Get(t.Context(), f.node.Name(), metav1.GetOptions{})
	if err != nil {
		add(err.Error())
	} else {
		add(nodeReady(corev1.ConditionTrue)(node))
		add(f.address(node))
	}
	return strings.Join(lines, "\n")
}

// address checks that the Node has the address of the node.
func (f *faultyAPI) address(node *corev1.Node) string {
	if !slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == f.node.Address() }) {
		return fmt.Sprintf("the node's addresses are %v", node.Status.Addresses)
	}
	return ""
}

// countLost checks that the agent is the one of the start, and counts pods that are lost or restarted.
func (f *faultyAPI) countLost(t *testing.T) {
	t.Helper()
	if now := valueOf(scrape(t, f.node), "process_start_time_seconds{}"); now != f.agentStart {
		t.Error("the agent was restarted")
	}
	list, err := client().CoreV1().Pods(f.space).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Status.Phase != corev1.PodRunning {
			f.counted.PodsLost(1)
			t.Errorf("pod %s is %s", p.Name, p.Status.Phase)
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				f.counted.Restarts(int(c.RestartCount))
				t.Errorf("pod %s was restarted %d times", p.Name, c.RestartCount)
			}
		}
	}
}
