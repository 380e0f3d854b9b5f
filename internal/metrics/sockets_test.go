package metrics

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestSockets(t *testing.T) {
	m := newMetrics(t)
	called := m.Sockets()
	called("/v1.PodResourcesLister/List", nil)
	called("/v1.PodResourcesLister/Get", nil)
	called("/v1.PodResourcesLister/Get", errors.New("pod none in namespace ns not found"))
	called("/v1.PodResourcesLister/GetAllocatableResources", nil)
	called("/v1alpha1.PodResourcesLister/List", nil)
	called("/v1alpha1.Pods/ListPods", nil)
	called("/v1alpha1.Pods/GetPod", status.Error(codes.NotFound, "none"))
	called("/v1alpha1.Pods/WatchPods", context.Canceled)
	called("/grpc.health.v1.Health/Check", nil)
	for name, want := range map[string]map[string]float64{
		"pod_resources_endpoint_requests_total":           {"server_api_version=v1": 4, "server_api_version=v1alpha1": 1},
		"pod_resources_endpoint_requests_list":            {"server_api_version=v1": 1},
		"pod_resources_endpoint_requests_get":             {"server_api_version=v1": 2},
		"pod_resources_endpoint_requests_get_allocatable": {"server_api_version=v1": 1},
		"pod_resources_endpoint_errors_get":               {"server_api_version=v1": 1},
		"pod_resources_endpoint_errors_list":              {},
		"pod_requests_total": {
			"server_api_version=v1alpha1 status_code=OK":       1,
			"server_api_version=v1alpha1 status_code=NotFound": 1,
			"server_api_version=v1alpha1 status_code=Canceled": 1,
		},
		"pod_requests_list_total":  {"server_api_version=v1alpha1 status_code=OK": 1},
		"pod_requests_get_total":   {"server_api_version=v1alpha1 status_code=NotFound": 1},
		"pod_requests_watch_total": {"server_api_version=v1alpha1 status_code=Canceled": 1},
	} {
		if diff := cmp.Diff(want, counts(t, m, "kubelet_"+name)); diff != "" {
			t.Errorf("kubelet_%s (-want +got):\n%s", name, diff)
		}
	}
}
