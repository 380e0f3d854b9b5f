package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/volume"
	"swiftlet/internal/worker"
)

// Sources are the functions that a scrape reads state with. All are required.
type Sources struct {
	// Desired lists the desired pods, Active those that hold resources.
	Desired, Active func() []*v1.Pod
	// MirrorPods returns the number of mirror pods.
	MirrorPods func() int
	// Working lists the pods that have a worker.
	Working func() []worker.PodState
	// Observed lists the pods in the runtime. LastRelist is the time of the last relist.
	Observed   func() []pod.Observed
	LastRelist func() time.Time
	Volumes    func() volume.Counts
	// PullRecords returns the number of pull records on disk, of pulls in progress and of finished ones.
	PullRecords func() (inProgress, done int)
	// LogBytes returns the disk usage of a container's logs.
	LogBytes func(ref pod.Ref, container string) (int64, error)
	// Plugins maps plugin sockets to whether the plugin is registered.
	Plugins func() map[string]bool
	// ClaimsInUse counts the resource claims that pods use, by driver.
	ClaimsInUse func() map[string]int
	// ClaimStats returns the usage of each PersistentVolumeClaim.
	ClaimStats func() []statsapi.VolumeStats
	// PendingResizes lists the pods with a pending resize by reason. ResizesInProgress returns the number of
	// pods with a resize in progress.
	PendingResizes    func() map[string][]*v1.Pod
	ResizesInProgress func() int
}

// sourceCollector collects Sources.
type sourceCollector struct{ Sources }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	desiredPods         = describe(kubelet+"desired_pods", "Pods that are wanted here.", "static")
	activePods          = describe(kubelet+"active_pods", "Pods that hold, or are about to hold, resources.", "static")
	mirrorPods          = describe(kubelet+"mirror_pods", "Images of static pods in the API server.")
	ephemeralContainers = describe(kubelet+"managed_ephemeral_containers", "Ephemeral containers of the wanted pods.")
	workingPods         = describe(kubelet+"working_pods", "Pods that are being looked after, by where they stand.", "lifecycle", "config", "static")
	runningPods         = describe(kubelet+"running_pods", "Pods with a running sandbox.")
	runningContainers   = describe(kubelet+"running_containers", "Containers that the runtime has, by state.", "container_state")
	lastRelist          = describe(kubelet+"pleg_last_seen_seconds", "When the runtime was last listed in full, Unix time.")
	volumes             = describe("volume_manager_total_volumes", "Volumes that pods want and that are mounted.", "plugin_name", "state")
	pullIntents         = describe(kubelet+"imagemanager_ondisk_pullintents", "Image pulls that are noted on disk as underway.")
	pulledRecords       = describe(kubelet+"imagemanager_ondisk_pulledrecords", "Pulled images that are noted on disk.")
	plugins             = describe("plugin_manager_total_plugins", "Plugins that are there and that are registered, by socket.", "socket_path", "state")
	logBytes            = describe(kubelet+"container_log_filesystem_used_bytes", "What containers' logs occupy on the disk.", "uid", "namespace", "pod", "container")
)

// RegisterSources exposes the sources, which are read on each scrape.
func (m *Metrics) RegisterSources(s Sources) error {
	if err := require.Set("read metrics", map[string]any{
		"Desired": s.Desired, "Active": s.Active, "MirrorPods": s.MirrorPods, "Working": s.Working, "Observed": s.Observed,
		"LastRelist": s.LastRelist, "Volumes": s.Volumes, "PullRecords": s.PullRecords, "LogBytes": s.LogBytes, "Plugins": s.Plugins,
		"ClaimStats": s.ClaimStats, "PendingResizes": s.PendingResizes, "ResizesInProgress": s.ResizesInProgress, "ClaimsInUse": s.ClaimsInUse,
	}); err != nil {
		return err
	}
	return m.registry.Register(sourceCollector{s})
}

// Describe implements prometheus.Collector.
func (sourceCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range claimStats {
		to <- f.desc
	}
	for _, d := range []*prometheus.Desc{desiredPods, activePods, mirrorPods, ephemeralContainers, workingPods, runningPods, runningContainers, lastRelist, volumes, pullIntents, pulledRecords, plugins, logBytes, pendingResizes, inProgressResizes, claimsInUse} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s sourceCollector) Collect(to chan<- prometheus.Metric) {
	emit := func(d *prometheus.Desc, value float64, labels ...string) {
		for i := range labels { // without UTF-8, this and all further metrics would be missing
			labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
		}
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	desired := s.Desired()
	for d, list := range map[*prometheus.Desc][]*v1.Pod{desiredPods: desired, activePods: s.Active()} {
		statics := countStatic(list)
		emit(d, float64(len(list)-statics), staticLabel(false))
		emit(d, float64(statics), staticLabel(true))
	}
	emit(mirrorPods, float64(s.MirrorPods()))
	for driver, n := range s.ClaimsInUse() {
		emit(claimsInUse, float64(n), driver)
	}
	ephemeral := 0
	for _, p := range desired {
		ephemeral += len(p.Spec.EphemeralContainers)
	}
	emit(ephemeralContainers, float64(ephemeral))
	if at := s.LastRelist(); !at.IsZero() {
		emit(lastRelist, float64(at.Unix()))
	}
	for labels, n := range countWorking(s.Working()) {
		emit(workingPods, float64(n), labels.lifecycle, labels.config, labels.static)
	}
	s.collectObserved(emit)
	inProgress, done := s.PullRecords()
	emit(pullIntents, float64(inProgress))
	emit(pulledRecords, float64(done))
	counts := s.Volumes()
	for state, kinds := range map[string]map[string]int{desiredState: counts.Desired, actualState: counts.Mounted} {
		for kind, n := range kinds {
			emit(volumes, float64(n), kind, state)
		}
	}
	for path, registered := range s.Plugins() {
		emit(plugins, 1, path, desiredState)
		if registered {
			emit(plugins, 1, path, actualState)
		}
	}
	collectClaims(s.ClaimStats(), emit)
	collectResizes(s.PendingResizes(), s.ResizesInProgress(), emit)
}

// The reference kubelet's labels for desired and actual state.
const (
	desiredState = "desired_state_of_world"
	actualState  = "actual_state_of_world"
)

// containerStates maps container states to labels.
var containerStates = map[pod.ContainerState]string{pod.Created: "created", pod.Running: "running", pod.Exited: "exited", pod.Unknown: "unknown"}

// collectObserved emits the metrics of the pods in the runtime.
func (s sourceCollector) collectObserved(emit func(*prometheus.Desc, float64, ...string)) {
	running, byState := 0, map[pod.ContainerState]int{}
	for _, o := range s.Observed() {
		if sandbox := o.Sandbox(); sandbox != nil && sandbox.Ready {
			running++
		}
		logged := map[string]bool{}
		for _, c := range o.Containers {
			byState[c.State]++
			if logged[c.Name] {
				continue
			}
			logged[c.Name] = true
			if n, err := s.LogBytes(o.Ref, c.Name); err == nil { // the pod may have been removed meanwhile
				emit(logBytes, float64(n), string(o.UID), o.Namespace, o.Name, c.Name)
			}
		}
	}
	emit(runningPods, float64(running))
	for state, n := range byState {
		emit(runningContainers, float64(n), containerStates[state])
	}
}

func countStatic(list []*v1.Pod) int {
	n := 0
	for _, p := range list {
		if pod.IsStatic(p) {
			n++
		}
	}
	return n
}

// workingLabels are the labels of the metric of working pods.
type workingLabels struct{ lifecycle, config, static string }

// countWorking counts pods by lifecycle and config. It returns all possible combinations, those
// without a pod too.
func countWorking(all []worker.PodState) map[workingLabels]int {
	counts := map[workingLabels]int{}
	for _, lifecycle := range []string{"sync", "terminating", "terminated"} {
		for _, s := range []workingLabels{{config: "desired"}, {config: "desired", static: "true"}, {config: "orphan"}, {config: "orphan", static: "true"}, {config: "runtime_only", static: "unknown"}} {
			s.lifecycle = lifecycle
			counts[s] = 0
		}
	}
	for _, w := range all {
		s := workingLabels{lifecycle: "terminated", config: "desired", static: staticLabel(w.Static)}
		switch {
		case w.Orphan:
			s.config, s.static = "runtime_only", "unknown"
		case w.Unwanted:
			s.config = "orphan"
		}
		switch w.Stage {
		case worker.Syncing:
			s.lifecycle = "sync"
		case worker.Stopping:
			s.lifecycle = "terminating"
		}
		counts[s]++
	}
	return counts
}
