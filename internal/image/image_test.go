package image

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestImageUser(t *testing.T) {
	if i := imageOf("x", &runtimeapi.Image{Uid: &runtimeapi.Int64Value{Value: 7}}); i.Ref != "x" || i.UID == nil || *i.UID != 7 {
		t.Errorf("by number: %+v", i)
	}
	if i := imageOf("x", &runtimeapi.Image{Username: "app"}); i.UID != nil || i.User != "app" {
		t.Errorf("by name: %+v", i)
	}
	if i := imageOf("x", nil); i.UID != nil || i.User != "" {
		t.Errorf("without image: %+v", i)
	}
}
