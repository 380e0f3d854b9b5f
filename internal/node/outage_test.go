package node

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"swiftlet/internal/kubeclient"
)

// breakable makes every request of the client fail while broken is set.
func breakable(client *fake.Clientset, broken *atomic.Bool) *fake.Clientset {
	client.PrependReactor("*", "*", func(k8stesting.Action) (bool, runtime.Object, error) {
		if broken.Load() {
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	return client
}

func TestRegistrationIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		client := breakable(fake.NewClientset(), &broken)
		f := start(t, client, nil)
		time.Sleep(time.Hour)
		if attempts := len(client.Actions()); attempts < 500 || attempts > 530 {
			t.Errorf("%d attempts in an hour, want about 515", attempts)
		}
		if got := f.Object().Status.Addresses; len(got) != 2 {
			t.Errorf("before the registration the Node has addresses %v, want 2", got)
		}
		broken.Store(false)
		time.Sleep(retryMax)
		synctest.Wait()
		if f.ready(t) != isReady {
			t.Error(f.ready(t))
		}
		select {
		case <-f.Registered():
		default:
			t.Error("Registered is not closed")
		}
	})
}

func TestStatusReportIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		f := start(t, breakable(fake.NewClientset(), &broken), nil)
		f.events.take()
		broken.Store(true)
		f.runtime.set(func(r *fakeRuntime) { r.err = errors.New("x") })
		time.Sleep(20 * time.Minute)
		if got := f.events.take(); got != nil {
			t.Errorf("events for a status that was not written: %v", got)
		}
		broken.Store(false)
		time.Sleep(retryMax)
		synctest.Wait()
		if want := "False container runtime is down"; f.ready(t) != want {
			t.Errorf("%s, want %s", f.ready(t), want)
		}
	})
}

// Retry registers, reports and renews without waiting for the back-off.
func TestRetrySkipsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		f := start(t, breakable(fake.NewClientset(), &broken), nil)
		time.Sleep(time.Hour)
		broken.Store(false)
		f.Retry()
		synctest.Wait()
		if f.ready(t) != isReady {
			t.Errorf("registered as %s", f.ready(t))
		}
		broken.Store(true)
		f.runtime.set(func(r *fakeRuntime) { r.err = errors.New("x") })
		time.Sleep(20 * time.Minute)
		broken.Store(false)
		f.Retry()
		synctest.Wait()
		if want := "False container runtime is down"; f.ready(t) != want {
			t.Errorf("%s, want %s", f.ready(t), want)
		}
		if age := time.Since(f.lease(t).Spec.RenewTime.Time); age != 0 {
			t.Errorf("the lease is %v old", age)
		}
	})
}

func (f *fixture) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease, err := f.client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "node-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestLeaseIsRenewedAndRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		client := breakable(fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "d49c"}}), &broken)
		f := start(t, client, nil)
		lease := f.lease(t)
		want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "d49c"}}
		if diff := cmp.Diff(want, lease.OwnerReferences); diff != "" {
			t.Error(diff)
		}
		if *lease.Spec.HolderIdentity != "node-1" || *lease.Spec.LeaseDurationSeconds != 40 {
			t.Errorf("%+v", lease.Spec)
		}
		age := func() time.Duration { return time.Since(f.lease(t).Spec.RenewTime.Time) }
		for range 12 {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if age() >= 10*time.Second {
				t.Errorf("lease is %v old", age())
			}
		}

		broken.Store(true)
		time.Sleep(time.Hour)
		broken.Store(false)
		time.Sleep(retryMax)
		synctest.Wait()
		if age() > retryMax {
			t.Errorf("%v after the outage the lease is %v old", retryMax, age())
		}

		if err := client.CoordinationV1().Leases("kube-node-lease").Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		f.lease(t) // created again
	})
}

func TestStandaloneNodeIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, nil)
		node := f.Object()
		if c := condition(&node.Status, v1.NodeReady); c == nil || c.Status != v1.ConditionTrue {
			t.Errorf("%+v", node.Status.Conditions)
		}
		if got := f.HostIPs(); len(got) != 1 || got[0] != "192.0.2.2" {
			t.Errorf("host IPs %v", got)
		}
		if diff := cmp.Diff("Normal NodeReady", last(f.events.take())); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := f.events.take(); got != nil {
			t.Errorf("unexpected events: %v", got)
		}
	})
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func TestEnforceAllocatableIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		f := start(t, nil, func(_ *Config, d *Deps) {
			d.EnforceAllocatable = func(limits v1.ResourceList) error {
				if _, ok := limits["pid"]; !ok {
					t.Error("no limit of pids")
				}
				if calls.Add(1) < 3 {
					return errors.New("too low")
				}
				return nil
			}
		})
		time.Sleep(10 * time.Minute)
		var got []string
		for _, e := range f.events.take() {
			if e == "Normal NodeAllocatableEnforced" || e == "Warning FailedNodeAllocatableEnforcement" {
				got = append(got, e)
			}
		}
		want := []string{"Warning FailedNodeAllocatableEnforcement", "Warning FailedNodeAllocatableEnforcement", "Normal NodeAllocatableEnforced"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// The node restores its status and acts on the spec when the informer shows changes of others.
func TestHandlesWatchedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen atomic.Pointer[v1.Node]
		var cidr atomic.Value
		var volumes atomic.Int32
		f := start(t, fake.NewClientset(), func(_ *Config, d *Deps) {
			d.Watched = func() (*v1.Node, error) {
				if node := seen.Load(); node != nil {
					return node, nil
				}
				return nil, errors.New("not synced")
			}
			d.SetPodCIDR = func(_ context.Context, c string) error { cidr.Store(c); return nil }
			d.VolumesReported = func([]v1.UniqueVolumeName) { volumes.Add(1) }
		})
		f.events.take()
		// The node lifecycle controller has set Ready to Unknown, and an administrator has cordoned
		// the node.
		node := f.node(t).DeepCopy()
		node.ResourceVersion = "1000"
		node.Status.Images = nil
		node.Spec.PodCIDRs = []string{"10.0.0.0/24", "fd00::/64"}
		node.Spec.Unschedulable = true
		condition(&node.Status, v1.NodeReady).Status = v1.ConditionUnknown
		delete(node.Labels, v1.LabelArchStable)
		if _, err := f.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		seen.Store(node)
		f.Notify()
		synctest.Wait()
		if f.ready(t) != isReady || f.node(t).Labels[v1.LabelArchStable] == "" {
			t.Errorf("not restored: %s, labels %v", f.ready(t), f.node(t).Labels)
		}
		if cidr.Load() != "10.0.0.0/24,fd00::/64" {
			t.Errorf("pod CIDRs are %v", cidr.Load())
		}
		if diff := cmp.Diff([]string{"Normal NodeNotSchedulable", "Normal NodeReady"}, f.events.take()); diff != "" {
			t.Error(diff)
		}
		if volumes.Load() == 0 {
			t.Error("VolumesReported was not called")
		}
	})
}

// After etcd is restored from a backup, the Node and its resource version are older.
func TestStatusIsReportedAfterEtcdRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen atomic.Pointer[v1.Node]
		f := start(t, fake.NewClientset(), func(_ *Config, d *Deps) {
			d.Watched = func() (*v1.Node, error) {
				if node := seen.Load(); node != nil {
					return node, nil
				}
				return nil, errors.New("not synced")
			}
		})
		show := func(version string, ready v1.ConditionStatus) {
			node := f.node(t).DeepCopy()
			node.ResourceVersion = version
			condition(&node.Status, v1.NodeReady).Status = ready
			if _, err := f.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			seen.Store(node)
		}
		show("1000", v1.ConditionUnknown)
		f.Notify()
		synctest.Wait()
		if f.Object().ResourceVersion != "1000" {
			t.Fatalf("the Node has version %s, want 1000", f.Object().ResourceVersion)
		}
		show("50", v1.ConditionFalse)
		f.Relisted()
		synctest.Wait()
		if f.ready(t) != isReady {
			t.Errorf("the restored Node has Ready condition %s", f.ready(t))
		}
	})
}

func TestStatusPatchReplacesAddressesAndKeepsSpec(t *testing.T) {
	from := &v1.Node{Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: "InternalIP", Address: "a"}, {Type: "Hostname", Address: "h"}}}}
	to := from.DeepCopy()
	to.Spec.Unschedulable = true // not part of a status patch
	to.Status.Addresses = []v1.NodeAddress{{Type: "InternalIP", Address: "b"}, {Type: "InternalIP", Address: "c"}}
	body, err := statusPatch(from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"status":{"addresses":[{"type":"InternalIP","address":"b"},{"type":"InternalIP","address":"c"},{"$patch":"replace"}]}}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// Registration succeeds over HTTP after an error, an aborted connection and an invalid
// response.
func TestRegistersWithFaultyServer(t *testing.T) {
	var requests atomic.Int32
	store := fake.NewClientset()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := requests.Add(1); {
		case n == 1:
			http.Error(w, "etcdserver: leader changed", http.StatusInternalServerError)
		case n == 2:
			panic(http.ErrAbortHandler)
		case n == 3:
			w.Write([]byte("<html>a proxy's page</html>"))
		case r.Method == http.MethodGet && r.URL.Path == "/api/v1/nodes/node-1":
			http.NotFound(w, r)
		case r.Method == http.MethodPost && r.URL.Path == "/api/v1/nodes":
			var node v1.Node
			if err := json.NewDecoder(r.Body).Decode(&node); err != nil {
				t.Error(err)
			}
			node.UID = "u"
			created, _ := store.CoreV1().Nodes().Create(r.Context(), &node, metav1.CreateOptions{})
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(created)
		default:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	client, err := kubeclient.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, nil, func(_ *Config, d *Deps) { d.Client, d.Heartbeat = client, client })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	select {
	case <-f.Registered():
	case <-time.After(20 * time.Second):
		t.Fatalf("not registered after %d requests", requests.Load())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if f.Object().UID != "u" {
		t.Errorf("the Node has %+v, want UID u", f.Object().ObjectMeta)
	}
}
