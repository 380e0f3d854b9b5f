package metrics

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/meter"
	"swiftlet/internal/observe"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/runtime"
)

// operations maps CRI calls to the reference kubelet's labels.
var operations = map[string]string{
	"Version": "version", "Status": "status", "RuntimeConfig": "runtime_config", "UpdateRuntimeConfig": "update_runtime_config",
	"RunPodSandbox": "run_podsandbox", "StopPodSandbox": "stop_podsandbox", "RemovePodSandbox": "remove_podsandbox",
	"PodSandboxStatus": "podsandbox_status", "ListPodSandbox": "list_podsandbox", "UpdatePodSandboxResources": "update_podsandbox_resources",
	"PodSandboxStats": "podsandbox_stats", "ListPodSandboxStats": "list_podsandbox_stats",
	"ListPodSandboxMetrics": "list_podsandbox_metrics", "ListMetricDescriptors": "list_metric_descriptors",
	"CreateContainer": "create_container", "StartContainer": "start_container", "StopContainer": "stop_container",
	"RemoveContainer": "remove_container", "ListContainers": "list_containers", "ContainerStatus": "container_status",
	"UpdateContainerResources": "update_container", "ReopenContainerLog": "reopen_container_log",
	"ContainerStats": "container_stats", "ListContainerStats": "list_container_stats",
	"CheckpointContainer": "checkpoint_container", "GetContainerEvents": "get_container_events",
	"ExecSync": "exec_sync", "Exec": "exec", "Attach": "attach", "PortForward": "port_forward",
	"ListImages": "list_images", "ImageStatus": "image_status", "PullImage": "pull_image", "RemoveImage": "remove_image", "ImageFsInfo": "image_fs_info",
}

// CRI measures calls to the container runtime by CRI method, and counts subscriptions to its
// events.
func (m *Metrics) CRI() (called meter.CallsOf, subscribed meter.Count) {
	total := m.counters(kubelet+"runtime_operations_total", "Calls to the container runtime.", "operation_type")
	failed := m.counters(kubelet+"runtime_operations_errors_total", "Calls to the container runtime that failed.", "operation_type")
	took := m.histograms(kubelet+"runtime_operations_duration_seconds", "How long calls to the container runtime took.", runtimeOperationBuckets, "operation_type")
	called = func(method string, d time.Duration, err error) {
		operation, known := operations[method]
		if !known {
			operation = method
		}
		total.WithLabelValues(operation).Inc()
		took.WithLabelValues(operation).Observe(d.Seconds())
		if err != nil {
			failed.WithLabelValues(operation).Inc()
		}
	}
	return called, m.counter(kubelet+"evented_pleg_connection_success_count", "Subscriptions to the runtime's events that it accepted.").Inc
}

// Observe measures relists and events of the container runtime (PLEG).
func (m *Metrics) Observe() observe.Meters {
	return observe.Meters{
		Relist:       observeSeconds(m.histogram(kubelet+"pleg_relist_duration_seconds", "How long it took to list all that the runtime holds.", defaultBuckets)),
		Interval:     observeSeconds(m.histogram(kubelet+"pleg_relist_interval_seconds", "The time between such lists.", relistIntervalBuckets)),
		PodRead:      observeSeconds(m.histogram(kubelet+"pleg_pod_relist_duration_seconds", "How long it took to read one pod from the runtime.", defaultBuckets)),
		StreamErrors: m.counter(kubelet+"evented_pleg_connection_error_count", "Subscriptions to the runtime's events that failed or ended.").Inc,
		EventLag:     observeSeconds(m.histogram(kubelet+"evented_pleg_connection_latency_seconds", "The age of the runtime's events when they arrived.", defaultBuckets)),
	}
}

// Runtime measures starts of pods.
func (m *Metrics) Runtime() runtime.Meters {
	took := m.histograms(kubelet+"run_podsandbox_duration_seconds", "How long it took to make sandboxes.", defaultBuckets, "runtime_handler")
	failed := m.counters(kubelet+"run_podsandbox_errors_total", "Sandboxes that could not be made.", "runtime_handler")
	pods := m.counter(kubelet+"started_pods_total", "Tries to start a pod.")
	podsFailed := m.counter(kubelet+"started_pods_errors_total", "Tries to start a pod that failed.")
	userNamespaced := m.counter(kubelet+"started_user_namespaced_pods_total", "Tries to start a pod with users of its own.")
	return runtime.Meters{
		Sandbox: func(handler string, d time.Duration, err error) {
			took.WithLabelValues(handler).Observe(d.Seconds())
			if err != nil {
				failed.WithLabelValues(handler).Inc()
			}
		},
		Started: func(p *v1.Pod, err error) {
			pods.Inc()
			if hasUserNamespace(p) {
				userNamespaced.Inc()
			}
			if err != nil {
				podsFailed.Inc()
			}
		},
		HookFallback:    m.counter(kubelet+"lifecycle_handler_http_fallbacks_total", "Hooks over HTTPS that were answered over HTTP.").Inc,
		SleepTerminated: m.counter(kubelet+"sleep_action_terminated_early_total", "Hooks that were to sleep for longer than their container lived.").Inc,
	}
}

func hasUserNamespace(p *v1.Pod) bool { return p.Spec.HostUsers != nil && !*p.Spec.HostUsers }

// containerTypes maps container kinds to the reference kubelet's labels.
var containerTypes = map[pod.ContainerKind]string{pod.Init: "init_container", pod.Main: "container", pod.Ephemeral: "ephemeral_container"}

// Podsync measures starts of containers and resizes.
func (m *Metrics) Podsync() podsync.Meters {
	total := m.counters(kubelet+"started_containers_total", "Tries to start a container.", "container_type")
	failed := m.counters(kubelet+"started_containers_errors_total", "Tries to start a container that failed, by the reason that its status shows.", "container_type", "code")
	started := func(kind pod.ContainerKind, failure string) {
		total.WithLabelValues(containerTypes[kind]).Inc()
		if failure != "" {
			failed.WithLabelValues(containerTypes[kind], failure).Inc()
		}
	}
	resized := m.histograms(kubelet+"pod_resize_duration_milliseconds", "How long it took to change a pod's resources.", resizeBuckets, "success")
	// The runtime detects that it cannot map users only when it creates a container.
	userNamespacedFailed := m.counter(kubelet+"started_user_namespaced_pods_errors_total", "Tries to start a pod with users of its own that failed.")
	return podsync.Meters{
		Started: started,
		Began: func(p *v1.Pod, failed bool) {
			if failed && hasUserNamespace(p) {
				userNamespacedFailed.Inc()
			}
		},
		Resized: func(took time.Duration, success bool) {
			resized.WithLabelValues(strconv.FormatBool(success)).Observe(float64(took.Milliseconds()))
		},
		ImageVolumes: m.imageVolumes(),
	}
}

func (m *Metrics) imageVolumes() func(images int, mounted bool) {
	requested := m.counter(kubelet+"image_volume_requested_total", "Volumes of images that containers were to mount.")
	succeeded := m.counter(kubelet+"image_volume_mounted_succeed_total", "Those of them that were mounted.")
	failed := m.counter(kubelet+"image_volume_mounted_errors_total", "Those of them that the runtime could not mount.")
	return func(images int, mounted bool) {
		requested.Add(float64(images))
		if mounted {
			succeeded.Add(float64(images))
		} else {
			failed.Add(float64(images))
		}
	}
}

// OrphansCleaned records how many directories of orphaned pods the last cleanup found, and how many of
// them it could not remove.
func (m *Metrics) OrphansCleaned() func(found, left int) {
	all := m.gauge(kubelet+"orphan_pod_cleaned_volumes", "Orphaned pods with folders, as of the last round of housekeeping.")
	errors := m.gauge(kubelet+"orphan_pod_cleaned_volumes_errors", "Those of them that could not be removed.")
	return func(found, left int) {
		all.Set(float64(found))
		errors.Set(float64(left))
	}
}
