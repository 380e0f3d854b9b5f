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

// Worker measures pod workers.
func (m *Metrics) Worker() worker.Meters {
	containers := m.histogram(kubelet+"containers_per_pod_count", "How many containers pods have.", containersPerPodBuckets)
	wait := m.histogram(kubelet+"pod_worker_start_duration_seconds", "From seeing a pod to beginning with it.", defaultBuckets)
	restarted := m.counters(kubelet+"restarted_pods_total", "Pods that were started again under the same identity.", "static")
	for _, static := range []bool{false, true} {
		restarted.WithLabelValues(staticLabel(static))
	}
	return worker.Meters{
		FirstSync: func(p *v1.Pod) {
			containers.Observe(float64(len(p.Spec.Containers)))
			if seen, ok := seenAt(p); ok {
				wait.Observe(max(0, m.clock.Since(seen).Seconds())) // the clock may be set back
			}
		},
		Step:      observeSecondsBy(m.histograms(kubelet+"pod_worker_duration_seconds", "How long it took to handle one change or event of a pod.", defaultBuckets, "operation_type")),
		Restarted: func(p *v1.Pod) { restarted.WithLabelValues(staticLabel(pod.IsStatic(p))).Inc() },
		Orphaned:  m.counter(kubelet+"orphaned_runtime_pods_total", "Pods that the runtime had and nobody wanted.").Inc,
	}
}

// Panics counts the panics in work for one pod, which did not end the agent.
func (m *Metrics) Panics() func(part string) {
	return incBy(m.counters("swiftlet_contained_panics_total", "Panics in work for one pod, which was retried.", "part"))
}

// Eviction measures evictions.
func (m *Metrics) Eviction() eviction.Meters {
	return eviction.Meters{
		Evicted:  incBy(m.counters(kubelet+"evictions", "Pods that were evicted, by what there was too little of.", "eviction_signal")),
		StatsAge: observeSecondsBy(m.histograms(kubelet+"eviction_stats_age_seconds", "How old the figures were that a pod was evicted for.", defaultBuckets, "eviction_signal")),
	}
}

// seenAt returns when the kubelet first saw the pod.
func seenAt(p *v1.Pod) (time.Time, bool) {
	seen, err := time.Parse(time.RFC3339Nano, p.Annotations[pod.AnnotationSeen])
	return seen, err == nil
}

// Status measures status changes of pods and the delay until the API server has them.
func (m *Metrics) Status() status.Meters {
	started := m.histogram(kubelet+"pod_start_duration_seconds", "From seeing a pod until it runs.", podStartBuckets)
	terminated := m.counters(kubelet+"terminated_containers_total", "Containers that ended.", "container_type", "exit_code", "reason")
	return status.Meters{
		Changed: func(p *v1.Pod, before, after *v1.PodStatus) {
			if before.Phase != v1.PodRunning && after.Phase == v1.PodRunning {
				if seen, ok := seenAt(p); ok {
					started.Observe(max(0, m.clock.Since(seen).Seconds()))
				}
			}
			for kind, name := range containerTypes {
				previous := containerStatuses(before, kind)
				for _, c := range containerStatuses(after, kind) {
					for _, t := range newTerminations(previous, c) {
						terminated.WithLabelValues(name, strconv.Itoa(int(t.ExitCode)), t.Reason).Inc()
					}
				}
			}
		},
		Written: observeSeconds(m.histogram(kubelet+"pod_status_sync_duration_seconds", "From a change of a pod's status until the API server had it.", statusWriteBuckets)),
	}
}

func containerStatuses(s *v1.PodStatus, kind pod.ContainerKind) []v1.ContainerStatus {
	switch kind {
	case pod.Init:
		return s.InitContainerStatuses
	case pod.Ephemeral:
		return s.EphemeralContainerStatuses
	}
	return s.ContainerStatuses
}

// newTerminations returns the terminations that the previous status did not show. One that was
// followed by a restart shows only as the last state.
func newTerminations(previous []v1.ContainerStatus, now v1.ContainerStatus) []*v1.ContainerStateTerminated {
	known := map[string]bool{}
	for _, c := range previous {
		if c.Name == now.Name {
			for _, t := range terminations(&c) {
				known[t.ContainerID] = true
			}
		}
	}
	var added []*v1.ContainerStateTerminated
	for _, t := range terminations(&now) {
		if !known[t.ContainerID] {
			added = append(added, t)
			known[t.ContainerID] = true
		}
	}
	return added
}

func terminations(c *v1.ContainerStatus) []*v1.ContainerStateTerminated {
	var found []*v1.ContainerStateTerminated
	for _, t := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if t != nil {
			found = append(found, t)
		}
	}
	return found
}

// Image measures image pulls.
func (m *Metrics) Image() image.Meters {
	requests := m.counters(kubelet+"image_manager_ensure_image_requests_total", "Needs of an image.", "pull_policy", "present_locally", "pull_required")
	pulls := m.histograms(kubelet+"image_pull_duration_seconds", "How long it took to pull images, by their size.", imagePullBuckets, "image_size_in_bytes")
	return image.Meters{
		Ensured: func(policy v1.PullPolicy, present, pulled *bool) {
			requests.WithLabelValues(strings.ToLower(string(policy)), boolLabel(present), boolLabel(pulled)).Inc()
		},
		Checked:     incBy(m.counters(kubelet+"imagemanager_image_mustpull_checks_total", "Decisions on whether a pod may use an image without a pull.", "result")),
		PullStarted: m.starts.pulling,
		Pulled: func(size uint64, took time.Duration) {
			pulls.WithLabelValues(imageSizeLabel(size)).Observe(took.Seconds())
		},
	}
}

// ImageGC counts garbage-collected images by reason.
func (m *Metrics) ImageGC() meter.CountOf {
	return incBy(m.counters(kubelet+"image_garbage_collected_total", "Images that were removed, for room or for their age.", "reason"))
}

func boolLabel(value *bool) string {
	if value == nil {
		return "unknown"
	}
	return strconv.FormatBool(*value)
}

// admissionReasons are the values of the label "reason". The set is fixed, because reasons may
// contain names that users choose.
var admissionReasons = map[string]bool{
	"AppArmor": true, "PodOSSelectorNodeLabelDoesNotMatch": true, "PodOSNotSupported": true, "InvalidNodeInfo": true,
	"InitContainerRestartPolicyForbidden": true, "SupplementalGroupsPolicyNotSupported": true, "UnexpectedAdmissionError": true,
	"UnknownReason": true, "UnexpectedPredicateFailureType": true, "OutOfcpu": true, "OutOfmemory": true,
	"OutOfephemeral-storage": true, "OutOfpods": true, "PodLevelResourcesNotSupported": true, "PodFeatureUnsupported": true,
	"node(s) had taints that the pod didn't tolerate": true, "Evicted": true, "SysctlForbidden": true, "TopologyAffinityError": true,
	"NodeShutdown": true, "VolumeAttachmentLimitExceeded": true,
}

// Preemptions counts pods that were evicted for a critical pod.
func (m *Metrics) Preemptions() func(resource string) {
	return incBy(m.counters(kubelet+"preemptions", "Pods that were evicted for a critical pod, by the resource it needs.", "preemption_signal"))
}

// Admission counts admission decisions; the reason is empty for admitted pods.
func (m *Metrics) Admission() func(p *v1.Pod, rejection string) {
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

// configMode returns the level at which a pod specifies resources.
func configMode(p *v1.Pod) string {
	inContainers := false
	for c, kind := range pod.Containers(p) {
		specified := len(c.Resources.Requests)+len(c.Resources.Limits) > 0
		inContainers = inContainers || kind != pod.Ephemeral && specified
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
