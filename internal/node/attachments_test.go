package node

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestAttachmentsMergeAndReport(t *testing.T) {
	var requests, changes int
	var node *v1.Node
	a := NewAttachments(func() (*v1.Node, error) {
		if node == nil {
			return nil, errors.New("not synced")
		}
		return node, nil
	}, func() { requests++ }, func() { changes++ })

	if _, known := a.Merge([]v1.UniqueVolumeName{"new"}, false); known {
		t.Error("the list is known before the Node is, though an earlier agent may have volumes in use")
	}
	if _, ok := a.Attached("old"); ok {
		t.Error("a volume is attached before the Node is known")
	}
	node = &v1.Node{Status: v1.NodeStatus{
		VolumesInUse:    []v1.UniqueVolumeName{"old", "new"},
		VolumesAttached: []v1.AttachedVolume{{Name: "old", DevicePath: "/dev/old"}},
	}}
	if got, known := a.Merge([]v1.UniqueVolumeName{"new"}, false); !known || !slices.Equal(got, []v1.UniqueVolumeName{"new", "old"}) {
		t.Errorf("before all volumes are found: %v, %v, want new and old", got, known)
	}
	if got, known := a.Merge([]v1.UniqueVolumeName{"new"}, true); !known || !slices.Equal(got, []v1.UniqueVolumeName{"new"}) {
		t.Errorf("when all volumes are found: %v, %v, want new alone", got, known)
	}
	if path, ok := a.Attached("old"); !ok || path != "/dev/old" {
		t.Errorf("old is attached at %q, %v", path, ok)
	}

	if a.InUse("new") || requests != 1 {
		t.Errorf("new is in use before it was reported, or the report was not requested (%d)", requests)
	}
	a.Reported([]v1.UniqueVolumeName{"new"})
	a.Reported([]v1.UniqueVolumeName{"new"})
	if !a.InUse("new") || requests != 1 || changes != 1 {
		t.Errorf("after the report: %d requests, %d changes, want one each", requests, changes)
	}
}
