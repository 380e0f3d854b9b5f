package csi

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pluginreg"
)

func (f *fixture) objects(t *testing.T) (*v1.Node, *storagev1.CSINode) {
	t.Helper()
	node, err := f.client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	csinode, err := f.client.StorageV1().CSINodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node, csinode
}

// writes is the number of writes to the API server since the last call.
func (f *fixture) writes() (count int) {
	for _, a := range f.client.Actions() {
		if a.GetVerb() != "get" {
			count++
		}
	}
	f.client.ClearActions()
	return count
}

func TestRegisterWritesNodeAndCSINode(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	d.info = &csi.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: 9,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "a", "rack": "r"}}}
	if err := f.EnsureCSINode(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, announced := f.objects(t)
	if got := announced.Annotations[v1.MigratedPluginsAnnotationKey]; !strings.HasPrefix(got, "kubernetes.io/aws-ebs,") {
		t.Errorf("migrated plugins are %q", got)
	}
	if o := announced.OwnerReferences; len(o) != 1 || o[0].UID != "node-uid" || o[0].Kind != "Node" {
		t.Errorf("owners are %v", o)
	}
	f.register(t, d)
	node, csinode := f.objects(t)
	if node.Annotations[nodeIDAnnotation] != `{"disk.test":"id"}` || node.Labels["rack"] != "r" {
		t.Errorf("node has %v %v", node.Annotations, node.Labels)
	}
	if got := csinode.Spec.Drivers; len(got) != 1 || got[0].NodeID != "id" || strings.Join(got[0].TopologyKeys, ",") != "rack,zone" || *got[0].Allocatable.Count != 9 {
		t.Errorf("CSINode has %+v", got)
	}

	other := newDriver(t)
	second := pluginreg.Plugin{Name: "other.test", Endpoint: other.socket, Versions: []string{"1.1.0"}}
	if err := f.Register(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	f.Deregister(d.plugin())
	node, csinode = f.objects(t)
	if node.Annotations[nodeIDAnnotation] != `{"other.test":"id"}` || len(csinode.Spec.Drivers) != 1 || csinode.Spec.Drivers[0].Name != "other.test" {
		t.Errorf("after one was deregistered: %v %+v", node.Annotations, csinode.Spec.Drivers)
	}
	f.Deregister(second)
	if node, _ = f.objects(t); len(node.Annotations) != 0 {
		t.Errorf("after all were deregistered: %v", node.Annotations)
	}
}

// A driver that is registered again, or before a restart of the agent, causes no write.
func TestRegisterAgainWritesNothing(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	if f.writes() == 0 {
		t.Fatal("nothing was written at all")
	}
	f.mu.Lock()
	clear(f.drivers)
	f.mu.Unlock()
	f.register(t, d)
	if n := f.writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

func TestTopologyCollision(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	d.info.AccessibleTopology = &csi.Topology{Segments: map[string]string{"zone": "b"}}
	err := f.Register(t.Context(), d.plugin())
	if err == nil || !strings.Contains(err.Error(), `detected topology value collision: driver reported "zone":"b" but existing label is "zone":"a"`) {
		t.Error(err)
	}
	if _, err := f.connect(driverName); err == nil {
		t.Error("a driver whose registration failed is used")
	}
}

// The CSINode of an earlier Node of the same name is replaced.
func TestCSINodeOfEarlierNodeIsReplaced(t *testing.T) {
	f, d := newFixture(t, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: "n", OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "n", UID: "earlier"}}},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "long.gone", NodeID: "x"}}},
	}), newDriver(t)
	f.register(t, d)
	if _, csinode := f.objects(t); len(csinode.Spec.Drivers) != 1 || csinode.Spec.Drivers[0].Name != driverName || csinode.OwnerReferences[0].UID != "node-uid" {
		t.Errorf("CSINode is %+v", csinode)
	}
}

func TestValidate(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	const taken = "Another driver with the same name is already registered with a higher supported version"
	for _, c := range []struct {
		name     string
		versions []string
		want     string
	}{
		{"new.test", []string{"1.2.0", "0.3.0"}, ""},
		{"new.test", nil, "Plugin returned an empty list for supported versions"},
		{"new.test", []string{"2.0.0"}, "None of the versions specified"},
		{"new.test", []string{"rubbish"}, "None of the versions specified"},
		{driverName, []string{"1.0.0"}, taken},
		{driverName, []string{"1.1.0"}, ""},
	} {
		err := f.Validate(t.Context(), pluginreg.Plugin{Name: c.name, Versions: c.versions})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.name, c.versions, err, c.want)
		}
	}
}

// Deregistering a driver that was replaced on another socket keeps the new one.
func TestDeregisterReplacedDriver(t *testing.T) {
	f, d, newer := newFixture(t), newDriver(t), newDriver(t)
	f.register(t, d)
	next := newer.plugin()
	next.Versions = []string{"1.1.0"}
	if err := f.Register(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	f.Deregister(d.plugin())
	if _, err := f.connect(driverName); err != nil {
		t.Error(err)
	}
	if _, csinode := f.objects(t); len(csinode.Spec.Drivers) != 1 {
		t.Errorf("CSINode has %v", csinode.Spec.Drivers)
	}
}

func TestCallsAreMeasured(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	var calls []string
	f.deps.ObserveCall = func(driver, method, code string, _ time.Duration) {
		calls = append(calls, driver+" "+method+" "+code)
	}
	f.register(t, d)
	d.failWith(status.Error(codes.Aborted, "no"))
	if err := f.Stage(t.Context(), f.request()); err == nil {
		t.Fatal("staged")
	}
	want := []string{
		"disk.test /csi.v1.Node/NodeGetInfo OK",
		"disk.test /csi.v1.Node/NodeGetCapabilities OK",
		"disk.test /csi.v1.Node/NodeStageVolume Aborted",
	}
	if !slices.Equal(calls, want) {
		t.Errorf("calls are %q, want %q", calls, want)
	}
}

// The annotation is text that anyone who may change the Node can write. Valid JSON need not be an object.
func TestChangedIDs(t *testing.T) {
	for text, want := range map[string]string{
		"":                   `{"d":"id"}`,
		`{"e":"2"}`:          `{"d":"id","e":"2"}`,
		"null":               `{"d":"id"}`,
		" null ":             `{"d":"id"}`,
		`{"d":null,"e":"2"}`: `{"d":"id","e":"2"}`,
	} {
		got, err := changedIDs(text, func(ids map[string]string) { ids["d"] = "id" })
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"{", "[]", `"x"`, "7"} {
		if got, err := changedIDs(text, func(map[string]string) {}); err == nil {
			t.Errorf("%q: %q, want an error", text, got)
		}
	}
}
