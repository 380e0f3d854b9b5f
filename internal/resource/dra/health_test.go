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

// report reports one device of the pool p.
func (f *fakeDriver) report(device string, health healthv1.HealthStatus, message string) {
	f.reports <- &healthv1.NodeWatchResourcesResponse{Devices: []*healthv1.DeviceHealth{
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: device}, Health: health, Message: message},
	}}
}

// run runs the manager until the test ends or stop is called.
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

// prepareWithHealth registers a driver with these services, and prepares a claim of it for a pod.
func prepareWithHealth(n *node, services ...string) *v1.Pod {
	n.Helper()
	n.plugin.Versions = append([]string{drav1.DRAPluginService}, services...)
	n.register()
	n.allocate("claim", "one")
	p := claimingPod("one", "claim", "")
	if err := n.prepare(p); err != nil {
		n.Fatal(err)
	}
	return p
}

// healthText formats the health of a container.
func (n *node) healthText(p *v1.Pod) string {
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

// expectHealth waits until the health is as wanted and the pod was woken for it, once.
func (n *node) expectHealth(p *v1.Pod, want string) {
	n.Helper()
	var woken []types.UID
	n.eventually(func() bool { woken = append(woken, n.takeWoken()...); return n.healthText(p) == want && len(woken) > 0 },
		func() string { return fmt.Sprintf("health is %s, want %s; woken are %s", n.healthText(p), want, woken) })
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

// Reported health is in the status, with either version of the service.
func TestHealth(t *testing.T) {
	for _, service := range []string{healthv1.DRAResourceHealthService, healthv1alpha1.DRAResourceHealthService} {
		t.Run(service, func(t *testing.T) {
			n := newNode(t)
			n.run()
			p := prepareWithHealth(n, service)
			if got := n.healthText(p); got != unknown {
				t.Errorf("before the first report: %s", got)
			}
			n.driver.report("claim2", sick, "hot")
			n.expectHealth(p, "claim:mine x/y=claim=Unknown x/y=claim2=Unhealthy:hot")
			n.driver.report("claim", healthy, "")
			n.expectHealth(p, "claim:mine x/y=claim=Healthy x/y=claim2=Unhealthy:hot")
			n.driver.report("claim2", sick, "hot") // unchanged
			n.driver.report("other", sick, "")     // unused device
			n.driver.report("claim", sick, "")
			n.expectHealth(p, "claim:mine x/y=claim=Unhealthy x/y=claim2=Unhealthy:hot")
			p.Spec.Containers[0].Resources.Claims[0].Request = "two/small"
			if got := n.healthText(p); got != "claim:mine/two/small x/y=claim2=Unhealthy:hot" {
				t.Errorf("health of one request is %s", got)
			}
			if got := n.Health(p, "without"); got != nil {
				t.Errorf("a container without claims has health %v", got)
			}
			n.cfg.HealthMessages = false
			if got := n.healthText(p); got != "claim:mine/two/small x/y=claim2=Unhealthy" {
				t.Errorf("without messages: %s", got)
			}
		})
	}
}

// A restarted agent restores the health until the reports expire.
func TestHealthRestoredAfterRestart(t *testing.T) {
	n := newNode(t)
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	n.clock = clk
	n.start()
	stop := n.run()
	p := prepareWithHealth(n, healthv1.DRAResourceHealthService)
	n.driver.report("claim", healthy, "")
	const want = "claim:mine x/y=claim=Healthy x/y=claim2=Unknown"
	n.expectHealth(p, want)
	stop()
	text, _ := os.ReadFile(n.healthPath())
	if want := `{"gpu.example.com":{"Devices":{"p/claim":{"PoolName":"p","DeviceName":"claim","Health":"Healthy","LastUpdated":"2026-01-02T03:04:05Z","HealthCheckTimeout":30000000000,"Message":""}}}}`; string(text) != want {
		t.Errorf("checkpoint is %s, want %s", text, want)
	}

	clk.Step(time.Hour)
	n.start()
	if got := n.healthText(p); got != want {
		t.Errorf("health after the restart: %s", got)
	}
	clk.Step(defaultHealthTimeout - time.Second)
	if next := n.dropExpiredHealth(); next != time.Second || n.healthText(p) != want {
		t.Errorf("health is %s, next expiry after %s", n.healthText(p), next)
	}
	clk.Step(time.Second)
	if next := n.dropExpiredHealth(); next != 0 {
		t.Errorf("next expiry after %s", next)
	}
	n.expectHealth(p, unknown)

	if err := os.WriteFile(n.healthPath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start() // ignores a corrupt checkpoint
}

// Reports that a driver does not renew expire.
func TestHealthExpires(t *testing.T) {
	n := newNode(t)
	clk := clocktesting.NewFakeClock(time.Now())
	n.clock = clk
	n.start()
	n.run()
	p := prepareWithHealth(n, healthv1.DRAResourceHealthService)
	n.driver.reports <- &healthv1.NodeWatchResourcesResponse{Devices: []*healthv1.DeviceHealth{
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: "claim"}, Health: healthy, HealthCheckTimeoutSeconds: 5},
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: "claim2"}, Health: healthy, HealthCheckTimeoutSeconds: -1},
	}}
	n.expectHealth(p, "claim:mine x/y=claim=Healthy x/y=claim2=Healthy")
	// The other timer is that of cleanSlices.
	n.eventually(func() bool { return clk.Waiters() == 2 }, func() string { return "no timer for the expiry" })
	clk.Step(5 * time.Second)
	n.expectHealth(p, "claim:mine x/y=claim=Unknown x/y=claim2=Healthy")
	n.driver.report("claim", sick, "")
	n.expectHealth(p, "claim:mine x/y=claim=Unhealthy x/y=claim2=Healthy")
}

// Health is unknown while the driver is disconnected, and watched again after it reconnects. A
// driver that returns Unimplemented is not watched again.
func TestHealthOfLostDriver(t *testing.T) {
	n := newNode(t)
	n.run()
	endpoint := filepath.Join(n.dir, "e.sock")
	kill := n.serve(n.driver, endpoint)
	n.plugin.Endpoint = endpoint
	p := prepareWithHealth(n, healthv1.DRAResourceHealthService)
	const want = "claim:mine x/y=claim=Healthy x/y=claim2=Unknown"
	n.driver.report("claim", healthy, "")
	n.expectHealth(p, want)
	kill()
	n.expectHealth(p, unknown)
	kill = n.serve(n.driver, endpoint)
	n.driver.report("claim", healthy, "")
	n.expectHealth(p, want)
	n.driver.mu.Lock()
	n.driver.refusal = status.Error(codes.Unimplemented, "not here")
	n.driver.mu.Unlock()
	kill()
	n.expectHealth(p, unknown)
	n.driver.takeCalls()
	n.serve(n.driver, endpoint)
	var calls []string
	n.eventually(func() bool { calls = n.driver.takeCalls(); return len(calls) > 0 }, func() string { return "no call to the driver" })
	n.Deregister(n.plugin)
	if calls = append(calls, n.driver.takeCalls()...); !slices.Equal(calls, []string{"watch"}) {
		t.Errorf("calls to a driver without health service: %q", calls)
	}
}

// During a rolling update, the end of one driver does not drop the reports of the other.
func TestHealthOfReplacedDriver(t *testing.T) {
	n := newNode(t)
	n.run()
	p := prepareWithHealth(n, healthv1.DRAResourceHealthService)
	n.driver.report("claim", healthy, "")
	n.expectHealth(p, "claim:mine x/y=claim=Healthy x/y=claim2=Unknown")
	old, next := n.plugin, newFakeDriver()
	n.plugin.Endpoint = filepath.Join(n.dir, "e.sock")
	n.serve(next, n.plugin.Endpoint)
	n.register()
	next.report("claim", sick, "")
	const want = "claim:mine x/y=claim=Unhealthy x/y=claim2=Unknown"
	n.expectHealth(p, want)
	n.Deregister(old)
	if got := n.healthText(p); got != want {
		t.Errorf("health is %s", got)
	}
	n.Deregister(n.plugin)
	n.expectHealth(p, unknown)
}

// The number of devices per driver is limited.
func TestTooManyDevices(t *testing.T) {
	n := newNode(t)
	prepareWithHealth(n)
	d := n.drivers[driverName][0]
	var reports []*healthv1.DeviceHealth
	for i := range maxDevices + 10 {
		reports = append(reports, &healthv1.DeviceHealth{Device: &healthv1.DeviceIdentifier{DeviceName: fmt.Sprint(i)}})
	}
	n.recordHealth(d, reports)
	if got := len(n.health[driverName].Devices); got != maxDevices {
		t.Errorf("%d devices are stored", got)
	}
}

// So is the length of their names: thousands of names of a megabyte would fill memory and disk, too.
func TestLongDeviceNames(t *testing.T) {
	n := newNode(t)
	prepareWithHealth(n)
	long := strings.Repeat("x", 1<<20)
	n.recordHealth(n.drivers[driverName][0], []*healthv1.DeviceHealth{
		{Device: &healthv1.DeviceIdentifier{PoolName: long, DeviceName: "d"}},
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: long}},
		{Device: &healthv1.DeviceIdentifier{PoolName: "p", DeviceName: "d"}},
	})
	if got := len(n.health[driverName].Devices); got != 1 {
		t.Errorf("%d devices are stored, want 1", got)
	}
}

func TestTruncateMessage(t *testing.T) {
	for _, c := range []string{"ok", strings.Repeat("x", v1.ResourceHealthMessageMaxLength), strings.Repeat("ü", v1.ResourceHealthMessageMaxLength)} {
		got := truncateMessage(c)
		if len(got) > v1.ResourceHealthMessageMaxLength || len(c) <= v1.ResourceHealthMessageMaxLength && got != c ||
			len(c) > v1.ResourceHealthMessageMaxLength && (!strings.HasSuffix(got, "...") || strings.ToValidUTF8(got, "") != got) {
			t.Errorf("%d bytes are cut to %d: %s", len(c), len(got), got)
		}
	}
}

// The slices of a driver are deleted after its connection was lost for absenceGrace, even though
// its socket exists; once, and not if it reconnects in time.
func TestSlicesOfLostDriver(t *testing.T) {
	n := newNode(t)
	clk := clocktesting.NewFakeClock(time.Now())
	n.clock = clk
	n.start()
	n.plugin.Endpoint = filepath.Join(n.dir, "e.sock")
	kill := n.serve(n.driver, n.plugin.Endpoint)
	n.register()
	n.run()
	awaitConnected := func(want bool) {
		t.Helper()
		n.eventually(func() bool {
			n.Manager.mu.Lock()
			defer n.Manager.mu.Unlock()
			return n.connectedLocked(driverName) == want
		}, func() string { return fmt.Sprintf("driver connected is not %t", want) })
	}
	awaitConnected(true)
	if n.deleteSlicesOfAbsent(t.Context()) != 0 {
		t.Error("a connected driver is due")
	}
	kill()
	awaitConnected(false)
	clk.Step(absenceGrace - time.Second)
	if due := n.deleteSlicesOfAbsent(t.Context()); due != time.Second {
		t.Errorf("due after %s", due)
	}
	kill = n.serve(n.driver, n.plugin.Endpoint)
	awaitConnected(true)
	clk.Step(absenceGrace)
	if due := n.deleteSlicesOfAbsent(t.Context()); due != 0 || len(n.deleted) > 0 {
		t.Errorf("reconnected, but due after %s", due)
	}
	kill()
	awaitConnected(false)
	clk.Step(absenceGrace)
	n.deleteSlicesOfAbsent(t.Context())
	if got := <-n.deleted; got != driverName {
		t.Errorf("deleted slices of %s", got)
	}
	if due := n.deleteSlicesOfAbsent(t.Context()); due != 0 {
		t.Errorf("due again after %s", due)
	}
}

// For a driver that never connected, absenceGrace has passed when the agent first lists the
// slices; for one that was lost just before, it has not.
func TestSlicesAtStart(t *testing.T) {
	n := newNode(t)
	clk := clocktesting.NewFakeClock(time.Now())
	n.clock = clk
	n.start()
	n.register()
	n.Deregister(n.plugin)
	clk.Step(absenceGrace / 2)
	n.slices = []string{driverName, "other"}
	if !n.findAbsentDrivers(t.Context()) {
		t.Fatal("cannot list the drivers")
	}
	if due := n.deleteSlicesOfAbsent(t.Context()); due != absenceGrace/2 || len(n.deleted) != 1 || <-n.deleted != "other" {
		t.Errorf("deleted slices of %d drivers, the next is due after %s", len(n.deleted), due)
	}
}

// A driver may support the older version only.
func TestOlderService(t *testing.T) {
	n := newNode(t)
	n.plugin.Versions = []string{"v1beta1.DRAPlugin"}
	n.register()
	n.allocate("claim", "one")
	p := claimingPod("one", "claim", "two")
	if err := n.prepare(p); err != nil || n.cdi(p, 0) != "x/y=claim2" {
		t.Errorf("%v, %s", err, n.cdi(p, 0))
	}
	if err := n.Release(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	n.expectCalls("prepare claim", "unprepare claim")
	n.plugin.Versions = []string{"v1alpha3.DRAPlugin"}
	want := `invalid supported gRPC versions of DRA driver plugin gpu.example.com at endpoint ` + n.plugin.Endpoint +
		`: none of services supported by the plugin (["v1alpha3.DRAPlugin"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])`
	if err := n.Validate(t.Context(), n.plugin); err == nil || err.Error() != want {
		t.Errorf("an unsupported version: %v", err)
	}
}

// An absent driver does not block the release of other claims.
func TestRetain(t *testing.T) {
	n := newNode(t)
	n.register()
	for _, name := range []string{"a", "b", "c"} {
		n.allocate(name, name)
		if err := n.prepare(claimingPod(name, name, "")); err != nil {
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
