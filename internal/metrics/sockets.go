package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"
)

// Sockets counts calls to the APIs for programs on the node by full gRPC method, such as
// /v1.PodResourcesLister/List.
func (m *Metrics) Sockets() func(fullMethod string, err error) {
	resources, pods := m.podResources(), m.podsAPI()
	return func(fullMethod string, err error) {
		service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
		version, name, _ := strings.Cut(service, ".")
		switch name {
		case "PodResourcesLister":
			resources(version, method, err)
		case "Pods":
			pods(version, method, err)
		}
	}
}

// podResources counts calls of PodResources by version and method. v1alpha1 has no metrics by
// method.
func (m *Metrics) podResources() func(version, method string, err error) {
	const name, label = kubelet + "pod_resources_endpoint_", "server_api_version"
	total := m.counters(name+"requests_total", "Calls of PodResources.", label)
	type calls struct{ total, failed *prometheus.CounterVec }
	of := func(method string) calls {
		return calls{
			m.counters(name+"requests_"+method, "Calls of one method of PodResources.", label),
			m.counters(name+"errors_"+method, "Calls of one method of PodResources that failed.", label),
		}
	}
	methods := map[string]calls{"List": of("list"), "Get": of("get"), "GetAllocatableResources": of("get_allocatable")}
	return func(version, method string, err error) {
		total.WithLabelValues(version).Inc()
		one, known := methods[method]
		if !known || version != "v1" {
			return
		}
		one.total.WithLabelValues(version).Inc()
		if err != nil {
			one.failed.WithLabelValues(version).Inc()
		}
	}
}

// podsAPI counts calls of Pods by version, method and status code.
func (m *Metrics) podsAPI() func(version, method string, err error) {
	const name = kubelet + "pod_requests_"
	of := func(which, help string) *prometheus.CounterVec {
		return m.counters(name+which, help, "server_api_version", "status_code")
	}
	total := of("total", "Calls of the Pods API.")
	methods := map[string]*prometheus.CounterVec{
		"ListPods":  of("list_total", "Calls of the Pods API for all pods."),
		"GetPod":    of("get_total", "Calls of the Pods API for one pod."),
		"WatchPods": of("watch_total", "Calls of the Pods API for pods as they change."),
	}
	return func(version, method string, err error) {
		code := statusCode(err)
		total.WithLabelValues(version, code).Inc()
		if one := methods[method]; one != nil {
			one.WithLabelValues(version, code).Inc()
		}
	}
}

// statusCode returns the gRPC code of a call. If the client disconnected, err is the error of the
// call's context.
func statusCode(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Code().String()
	}
	return status.FromContextError(err).Code().String()
}
