package dra

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	healthy = healthv1.HealthStatus_HEALTHY
	sick    = healthv1.HealthStatus_UNHEALTHY
)

func (f *fakeDriver) NodeWatchResources(_ *healthv1.NodeWatchResourcesRequest, stream healthv1.DRAResourceHealth_NodeWatchResourcesServer) error {
	f.mu.Lock()
	f.calls = append(f.calls, "watch")
	refusal := f.refusal
	f.mu.Unlock()
	if refusal != nil {
		return refusal
	}
	for {
		select {
		case r := <-f.reports:
			if err := stream.Send(r); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

// says reports one device of the pool p.
func (f *fakeDriver) says(device string, how healthv1.HealthStatus, message string) {
	f.reports <- &healthv1.NodeWatchResourcesResponse{Devices: []*healthv1.DeviceHealth{
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: device}, Health: how, Message: message},
	}}
}

// run attends to drivers until the test or stop ends it.
func (n *node) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	m := n.Manager
	go func() { done <- m.Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			<-done
		}
	}
	n.Cleanup(stop)
	return stop
}

// begin is a node with a driver of these services whose claim the pod one uses.
func begin(n *node, services ...string) *v1.Pod {
	n.Helper()
	n.plugin.Versions = append([]string{drav1.DRAPluginService}, services...)
	n.register()
	n.allocate("claim", "one")
	p := user("one", "claim", "")
	if err := n.prepare(p); err != nil {
		n.Fatal(err)
	}
	return p
}

// shown is a container's health as text.
func (n *node) shown(p *v1.Pod) string {
	var all []string
	for _, s := range n.Health(p, "c") {
		all = append(all, string(s.Name))
		for _, r := range s.Resources {
			one := fmt.Sprintf("%s=%s", r.ResourceID, r.Health)
			if r.Message != nil {
				one += ":" + *r.Message
			}
			all = append(all, one)
		}
	}
	return strings.Join(all, " ")
}

// becomes waits until this is shown, and the pod was woken for it, once.
func (n *node) becomes(p *v1.Pod, want string) {
	n.Helper()
	var woken []types.UID
	n.eventually(func() bool { woken = append(woken, n.awoke()...); return n.shown(p) == want && len(woken) > 0 },
		func() string { return fmt.Sprintf("shown is %s, want %s; woken are %s", n.shown(p), want, woken) })
	if len(woken) != 1 || woken[0] != p.UID {
		n.Errorf("woken for %s: %s", want, woken)
	}
}

func (n *node) eventually(ok func() bool, otherwise func() string) {
	n.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	n.Fatal(otherwise())
}

const unknown = "claim:mine x/y=claim=Unknown x/y=claim2=Unknown"

// TestHealth: what a driver says of devices is shown, in either version of the service.
func TestHealth(t *testing.T) {
	for _, service := range []string{healthv1.DRAResourceHealthService, healthv1alpha1.DRAResourceHealthService} {
		t.Run(service, func(t *testing.T) {
			n := newNode(t)
			n.run()
			p := begin(n, service)
			if got := n.shown(p); got != unknown {
				t.Errorf("before anything is said: %s", got)
			}
			n.driver.says("claim2", sick, "hot")
			n.becomes(p, "claim:mine x/y=claim=Unknown x/y=claim2=Unhealthy:hot")
			n.driver.says("claim", healthy, "")
			n.becomes(p, "claim:mine x/y=claim=Healthy x/y=claim2=Unhealthy:hot")
			n.driver.says("claim2", sick, "hot") // nothing new
			n.driver.says("other", sick, "")     // nobody uses it
			n.driver.says("claim", sick, "")
			n.becomes(p, "claim:mine x/y=claim=Unhealthy x/y=claim2=Unhealthy:hot")
			p.Spec.Containers[0].Resources.Claims[0].Request = "two/small"
			if got := n.shown(p); got != "claim:mine/two/small x/y=claim2=Unhealthy:hot" {
				t.Errorf("one request is shown as %s", got)
			}
			if got := n.Health(p, "without"); got != nil {
				t.Errorf("a container without claims shows %v", got)
			}
			n.cfg.HealthMessages = false
			if got := n.shown(p); got != "claim:mine/two/small x/y=claim2=Unhealthy" {
				t.Errorf("without messages: %s", got)
			}
		})
	}
}

// TestHealthKept: the next agent shows the same until the driver had the time to come back.
func TestHealthKept(t *testing.T) {
	n := newNode(t)
	time0 := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	n.clock = time0
	n.start()
	stop := n.run()
	p := begin(n, healthv1.DRAResourceHealthService)
	n.driver.says("claim", healthy, "")
	const want = "claim:mine x/y=claim=Healthy x/y=claim2=Unknown"
	n.becomes(p, want)
	stop()
	text, _ := os.ReadFile(n.healthPath())
	if want := `{"gpu.example.com":{"Devices":{"p/claim":{"PoolName":"p","DeviceName":"claim","Health":"Healthy","LastUpdated":"2026-01-02T03:04:05Z","HealthCheckTimeout":30000000000,"Message":""}}}}`; string(text) != want {
		t.Errorf("written is %s, want %s", text, want)
	}

	time0.Step(time.Hour)
	n.start()
	if got := n.shown(p); got != want {
		t.Errorf("the next agent shows %s", got)
	}
	time0.Step(lease - time.Second)
	if next := n.stale(); next != time.Second || n.shown(p) != want {
		t.Errorf("shown is %s, look again after %s", n.shown(p), next)
	}
	time0.Step(time.Second)
	if next := n.stale(); next != 0 {
		t.Errorf("look again after %s", next)
	}
	n.becomes(p, unknown)

	if err := os.WriteFile(n.healthPath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start() // a bad record is no obstacle
}

// TestHealthStale: a driver that falls silent is no longer believed.
func TestHealthStale(t *testing.T) {
	n := newNode(t)
	time0 := clocktesting.NewFakeClock(time.Now())
	n.clock = time0
	n.start()
	n.run()
	p := begin(n, healthv1.DRAResourceHealthService)
	n.driver.reports <- &healthv1.NodeWatchResourcesResponse{Devices: []*healthv1.DeviceHealth{
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: "claim"}, Health: healthy, HealthCheckTimeoutSeconds: 5},
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: "claim2"}, Health: healthy, HealthCheckTimeoutSeconds: -1},
	}}
	n.becomes(p, "claim:mine x/y=claim=Healthy x/y=claim2=Healthy")
	// One timer is that of withdrawal.
	n.eventually(func() bool { return time0.Waiters() == 2 }, func() string { return "nobody looks at the clock" })
	time0.Step(5 * time.Second)
	n.becomes(p, "claim:mine x/y=claim=Unknown x/y=claim2=Healthy")
	n.driver.says("claim", sick, "")
	n.becomes(p, "claim:mine x/y=claim=Unhealthy x/y=claim2=Healthy")
}

// TestHealthOfLostDriver: nothing is known while a driver is away; it is heard again when it
// is back, and asked no more once it says that it has nothing to tell.
func TestHealthOfLostDriver(t *testing.T) {
	n := newNode(t)
	n.run()
	endpoint := filepath.Join(n.dir, "e.sock")
	kill := n.serve(n.driver, endpoint)
	n.plugin.Endpoint = endpoint
	p := begin(n, healthv1.DRAResourceHealthService)
	const want = "claim:mine x/y=claim=Healthy x/y=claim2=Unknown"
	n.driver.says("claim", healthy, "")
	n.becomes(p, want)
	kill()
	n.becomes(p, unknown)
	kill = n.serve(n.driver, endpoint)
	n.driver.says("claim", healthy, "")
	n.becomes(p, want)
	n.driver.mu.Lock()
	n.driver.refusal = status.Error(codes.Unimplemented, "not here")
	n.driver.mu.Unlock()
	kill()
	n.becomes(p, unknown)
	n.driver.took()
	n.serve(n.driver, endpoint)
	var calls []string
	n.eventually(func() bool { calls = n.driver.took(); return len(calls) > 0 }, func() string { return "the driver is not asked" })
	n.Deregister(n.plugin)
	if calls = append(calls, n.driver.took()...); !slices.Equal(calls, []string{"watch"}) {
		t.Errorf("a driver that does not tell was asked %q", calls)
	}
}

// TestHealthOfReplacedDriver: while one process replaces another, the end of one does not
// make the other's word void.
func TestHealthOfReplacedDriver(t *testing.T) {
	n := newNode(t)
	n.run()
	p := begin(n, healthv1.DRAResourceHealthService)
	n.driver.says("claim", healthy, "")
	n.becomes(p, "claim:mine x/y=claim=Healthy x/y=claim2=Unknown")
	old, next := n.plugin, newFakeDriver()
	n.plugin.Endpoint = filepath.Join(n.dir, "e.sock")
	n.serve(next, n.plugin.Endpoint)
	n.register()
	next.says("claim", sick, "")
	const want = "claim:mine x/y=claim=Unhealthy x/y=claim2=Unknown"
	n.becomes(p, want)
	n.Deregister(old)
	if got := n.shown(p); got != want {
		t.Errorf("shown is %s", got)
	}
	n.Deregister(n.plugin)
	n.becomes(p, unknown)
}

// TestTooManyDevices: what an ever-inventing driver says has an end.
func TestTooManyDevices(t *testing.T) {
	n := newNode(t)
	begin(n)
	d := n.drivers[driverName][0]
	var told []*healthv1.DeviceHealth
	for i := range mostDevices + 10 {
		told = append(told, &healthv1.DeviceHealth{Device: &healthv1.DeviceIdentifier{DeviceName: fmt.Sprint(i)}})
	}
	n.heard(d, told)
	if got := len(n.health[driverName].Devices); got != mostDevices {
		t.Errorf("%d devices are kept", got)
	}
}

func TestShort(t *testing.T) {
	for _, c := range []string{"ok", strings.Repeat("x", v1.ResourceHealthMessageMaxLength), strings.Repeat("ü", v1.ResourceHealthMessageMaxLength)} {
		got := short(c)
		if len(got) > v1.ResourceHealthMessageMaxLength || len(c) <= v1.ResourceHealthMessageMaxLength && got != c ||
			len(c) > v1.ResourceHealthMessageMaxLength && (!strings.HasSuffix(got, "...") || strings.ToValidUTF8(got, "") != got) {
			t.Errorf("%d bytes are cut to %d: %s", len(c), len(got), got)
		}
	}
}

// TestOffersOfLostDriver: what a driver offers is withdrawn a while after its connection is
// lost, though its socket is still there; once, and not if it is back in time.
func TestOffersOfLostDriver(t *testing.T) {
	n := newNode(t)
	time0 := clocktesting.NewFakeClock(time.Now())
	n.clock = time0
	n.start()
	n.plugin.Endpoint = filepath.Join(n.dir, "e.sock")
	kill := n.serve(n.driver, n.plugin.Endpoint)
	n.register()
	n.run()
	reached := func(want bool) {
		t.Helper()
		n.eventually(func() bool {
			n.Manager.mu.Lock()
			defer n.Manager.mu.Unlock()
			return n.usable(driverName) == want
		}, func() string { return fmt.Sprintf("driver is not seen to be reached: %t", want) })
	}
	reached(true)
	if n.withdraw(t.Context()) != 0 {
		t.Error("one that can be reached is due")
	}
	kill()
	reached(false)
	time0.Step(patience - time.Second)
	if due := n.withdraw(t.Context()); due != time.Second {
		t.Errorf("due after %s", due)
	}
	kill = n.serve(n.driver, n.plugin.Endpoint)
	reached(true)
	time0.Step(patience)
	if due := n.withdraw(t.Context()); due != 0 || len(n.offers) > 0 {
		t.Errorf("it is back, and due after %s", due)
	}
	kill()
	reached(false)
	time0.Step(patience)
	n.withdraw(t.Context())
	if got := <-n.offers; got != driverName {
		t.Errorf("withdrawn: %s", got)
	}
	if due := n.withdraw(t.Context()); due != 0 {
		t.Errorf("due again after %s", due)
	}
}

// TestOffersAtStart: a driver that was never seen has had its time when the agent looks
// which are missing; one that was lost just before has not.
func TestOffersAtStart(t *testing.T) {
	n := newNode(t)
	time0 := clocktesting.NewFakeClock(time.Now())
	n.clock = time0
	n.start()
	n.register()
	n.Deregister(n.plugin)
	time0.Step(patience / 2)
	n.offering = []string{driverName, "other"}
	if !n.missing(t.Context()) {
		t.Fatal("it is not known who offers devices")
	}
	if due := n.withdraw(t.Context()); due != patience/2 || len(n.offers) != 1 || <-n.offers != "other" {
		t.Errorf("withdrawn were %d offers, the next is due after %s", len(n.offers), due)
	}
}

// TestOldService: a driver may speak the older version only.
func TestOldService(t *testing.T) {
	n := newNode(t)
	n.plugin.Versions = []string{"v1beta1.DRAPlugin"}
	n.register()
	n.allocate("claim", "one")
	p := user("one", "claim", "two")
	if err := n.prepare(p); err != nil || n.cdi(p, 0) != "x/y=claim2" {
		t.Errorf("%v, %s", err, n.cdi(p, 0))
	}
	if err := n.Release(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	n.want("prepare claim", "unprepare claim")
	n.plugin.Versions = []string{"v1alpha3.DRAPlugin"}
	want := `invalid supported gRPC versions of DRA driver plugin gpu.example.com at endpoint ` + n.plugin.Endpoint +
		`: none of services supported by the plugin (["v1alpha3.DRAPlugin"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])`
	if err := n.Validate(t.Context(), n.plugin); err == nil || err.Error() != want {
		t.Errorf("a version that nobody speaks: %v", err)
	}
}

// TestRetain: a driver that is not there holds up no other.
func TestRetain(t *testing.T) {
	n := newNode(t)
	n.register()
	for _, name := range []string{"a", "b", "c"} {
		n.allocate(name, name)
		if err := n.prepare(user(name, name, "")); err != nil {
			t.Fatal(err)
		}
	}
	n.Manager.mu.Lock()
	n.Manager.claims[key{"ns", "b"}].DriverState = map[string]driverState{"absent": {}}
	n.Manager.mu.Unlock()
	err := n.Retain(t.Context(), func(types.UID) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "DRA driver absent is not registered") || n.InUse()[anyDriver] != 1 {
		t.Errorf("%v, left %v", err, n.InUse())
	}
}
