package admit

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestNodeGet(t *testing.T) {
	own, watched := inZone("own"), inZone("watched")
	empty := inZone("watched")
	empty.Status.Allocatable = nil
	for name, c := range map[string]struct {
		watched func() (*v1.Node, error)
		want    string
	}{
		"no_API_server":                     {nil, "own"},
		"informer_has_node":                 {nodeGetter(watched), "watched"},
		"informer_not_synced":               {func() (*v1.Node, error) { return nil, errors.New("not synced") }, "own"},
		"informer_node_without_allocatable": {nodeGetter(empty), "own"},
	} {
		node := &Node{deps: NodeDeps{
			Local:    func() *v1.Node { return own },
			Watched:  c.watched,
			IsDevice: func(name v1.ResourceName) bool { return name == "cpu" },
		}}
		got, err := node.Get()
		if err != nil {
			t.Fatal(err)
		}
		if got.Labels["zone"] != c.want {
			t.Errorf("%s: got the %s node", name, got.Labels["zone"])
		}
		if diff := cmp.Diff(amounts("pods", "10"), got.Status.Allocatable); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff(inZone("own"), own); diff != "" {
		t.Errorf("the node was changed: %s", diff)
	}
}
