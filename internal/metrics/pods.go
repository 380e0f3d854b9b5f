package metrics

import (
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/eviction"
	"swiftlet/internal/image"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/status"
	"swiftlet/internal/worker"
)

// Worker measures the pods' workers.
func (m *Metrics) Worker() worker.Meters {
	containers := m.histogram(kubelet+"containers_per_pod_count", "How many containers pods have.", containersPerPod)
	wait := m.histogram(kubelet+"pod_worker_start_duration_seconds", "From seeing a pod to beginning with it.", usual)
	restarted := m.counters(kubelet+"restarted_pods_total", "Pods that were started again under the same identity.", "static")
	for _, is := range []bool{false, true} {
		restarted.WithLabelValues(static(is))
	}
	return worker.Meters{
		Began: func(p *v1.Pod) {
			containers.Observe(float64(len(p.Spec.Containers)))
			if seen, ok := seenAt(p); ok {
				wait.Observe(m.clock.Since(seen).Seconds())
			}
		},
		Step:      secondsOf(m.histograms(kubelet+"pod_worker_duration_seconds", "How long it took to handle one change or event of a pod.", usual, "operation_type")),
		Restarted: func(p *v1.Pod) { restarted.WithLabelValues(static(pod.IsStatic(p))).Inc() },
		Orphaned:  m.counter(kubelet+"orphaned_runtime_pods_total", "Pods that the runtime had and nobody wanted.").Inc,
	}
}

// Eviction counts the pods that had to go.
func (m *Metrics) Eviction() eviction.Meters {
	return eviction.Meters{
		Evicted:  count(m.counters(kubelet+"evictions", "Pods that were evicted, by what there was too little of.", "eviction_signal")),
		StatsAge: secondsOf(m.histograms(kubelet+"eviction_stats_age_seconds", "How old the figures were that a pod was evicted for.", usual, "eviction_signal")),
	}
}

// seenAt is when the agent first saw the pod.
func seenAt(p *v1.Pod) (time.Time, bool) {
	seen, err := time.Parse(time.RFC3339Nano, p.Annotations[pod.AnnotationSeen])
	return seen, err == nil
}

// Status measures what becomes of pods, and how fast others learn of it.
func (m *Metrics) Status() status.Meters {
	started := m.histogram(kubelet+"pod_start_duration_seconds", "From seeing a pod until it runs.", podStarts)
	ended := m.counters(kubelet+"terminated_containers_total", "Containers that ended.", "container_type", "exit_code", "reason")
	return status.Meters{
		Changed: func(p *v1.Pod, before, after *v1.PodStatus) {
			if before.Phase != v1.PodRunning && after.Phase == v1.PodRunning {
				if seen, ok := seenAt(p); ok {
					started.Observe(m.clock.Since(seen).Seconds())
				}
			}
			for kind, name := range containerTypes {
				was := listOf(before, kind)
				for _, c := range listOf(after, kind) {
					for _, end := range newEnds(was, c) {
						ended.WithLabelValues(name, strconv.Itoa(int(end.ExitCode)), end.Reason).Inc()
					}
				}
			}
		},
		Written: seconds(m.histogram(kubelet+"pod_status_sync_duration_seconds", "From a change of a pod's status until the API server had it.", statusWrites)),
	}
}

func listOf(s *v1.PodStatus, kind pod.ContainerKind) []v1.ContainerStatus {
	switch kind {
	case pod.Init:
		return s.InitContainerStatuses
	case pod.Ephemeral:
		return s.EphemeralContainerStatuses
	}
	return s.ContainerStatuses
}

// newEnds are the ends of a container that its former status did not show. One that was
// started again at once shows only as the last state.
func newEnds(was []v1.ContainerStatus, now v1.ContainerStatus) []*v1.ContainerStateTerminated {
	known := map[string]bool{}
	for _, c := range was {
		if c.Name == now.Name {
			for _, end := range endsOf(&c) {
				known[end.ContainerID] = true
			}
		}
	}
	var fresh []*v1.ContainerStateTerminated
	for _, end := range endsOf(&now) {
		if !known[end.ContainerID] {
			fresh = append(fresh, end)
			known[end.ContainerID] = true
		}
	}
	return fresh
}

func endsOf(c *v1.ContainerStatus) []*v1.ContainerStateTerminated {
	var ends []*v1.ContainerStateTerminated
	for _, end := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if end != nil {
			ends = append(ends, end)
		}
	}
	return ends
}

// Image measures the fetching of images.
func (m *Metrics) Image() image.Meters {
	asked := m.counters(kubelet+"image_manager_ensure_image_requests_total", "Needs of an image.", "pull_policy", "present_locally", "pull_required")
	pulls := m.histograms(kubelet+"image_pull_duration_seconds", "How long it took to pull images, by their size.", imagePulls, "image_size_in_bytes")
	return image.Meters{
		Ensured: func(policy v1.PullPolicy, present, pulled *bool) {
			asked.WithLabelValues(strings.ToLower(string(policy)), known(present), known(pulled)).Inc()
		},
		Checked: count(m.counters(kubelet+"imagemanager_image_mustpull_checks_total", "Decisions on whether a pod may use an image without a pull.", "result")),
		Waits:   m.starts.pulling,
		Pulled:  func(size uint64, took time.Duration) { pulls.WithLabelValues(imageSize(size)).Observe(took.Seconds()) },
	}
}

// ImagesCollected counts images that were removed, by the reason.
func (m *Metrics) ImagesCollected() meter.CountOf {
	return count(m.counters(kubelet+"image_garbage_collected_total", "Images that were removed, for room or for their age.", "reason"))
}

func known(is *bool) string {
	if is == nil {
		return "unknown"
	}
	return strconv.FormatBool(*is)
}

// admissionReasons are those that are counted by name; pods must not be able to make up more.
var admissionReasons = map[string]bool{
	"AppArmor": true, "PodOSSelectorNodeLabelDoesNotMatch": true, "PodOSNotSupported": true, "InvalidNodeInfo": true,
	"InitContainerRestartPolicyForbidden": true, "SupplementalGroupsPolicyNotSupported": true, "UnexpectedAdmissionError": true,
	"UnknownReason": true, "UnexpectedPredicateFailureType": true, "OutOfcpu": true, "OutOfmemory": true,
	"OutOfephemeral-storage": true, "OutOfpods": true, "PodLevelResourcesNotSupported": true, "PodFeatureUnsupported": true,
	"node(s) had taints that the pod didn't tolerate": true, "Evicted": true, "SysctlForbidden": true, "TopologyAffinityError": true,
	"NodeShutdown": true, "VolumeAttachmentLimitExceeded": true,
}

// Admitted takes each verdict on a pod; the reason is empty where it was let in.
func (m *Metrics) Admitted() func(p *v1.Pod, rejection string) {
	rejected := m.counters(kubelet+"admission_rejections_total", "Pods that were not let in.", "reason")
	admitted := m.counters(kubelet+"pod_level_resources_admission_total", "Pods that were let in, by where they ask for resources.", "config_mode", "qos_class")
	return func(p *v1.Pod, reason string) {
		switch {
		case reason == "":
			admitted.WithLabelValues(configMode(p), strings.ToLower(string(pod.QOS(p)))).Inc()
		case admissionReasons[reason]:
			rejected.WithLabelValues(reason).Inc()
		case strings.HasPrefix(reason, "OutOf"):
			rejected.WithLabelValues("OutOfExtendedResources").Inc()
		default:
			rejected.WithLabelValues("Other").Inc()
		}
	}
}

// configMode says where a pod asks for resources.
func configMode(p *v1.Pod) string {
	inContainers := false
	for c, kind := range pod.Containers(p) {
		asks := len(c.Resources.Requests)+len(c.Resources.Limits) > 0
		inContainers = inContainers || kind != pod.Ephemeral && asks
	}
	switch inPod := resourcehelper.IsPodLevelResourcesSet(p); {
	case inPod && inContainers:
		return "pod_and_container_level"
	case inPod:
		return "pod_level"
	case inContainers:
		return "container_level"
	}
	return ""
}
