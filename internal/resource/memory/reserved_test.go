package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

func TestReservedByNode(t *testing.T) {
	list := func(pairs ...string) v1.ResourceList {
		l := v1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	entries := []kubelet.MemoryReservation{
		{NumaNode: 0, Limits: list("memory", "1Gi")},
		{NumaNode: 1, Limits: list("memory", "2Gi")},
		{NumaNode: 0, Limits: list("hugepages-1Gi", "3Gi")},
	}
	requested := map[int]v1.ResourceList{0: list("memory", "1Gi", "hugepages-1Gi", "3Gi"), 1: list("memory", "2Gi")}
	if diff := cmp.Diff(requested, ReservedByNode(entries)); diff != "" {
		t.Errorf("reserved by node (-want +got):\n%s", diff)
	}
	if len(entries[0].Limits) != 1 {
		t.Error("the configuration was changed")
	}
}
