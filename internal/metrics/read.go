package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/volume"
	"swiftlet/internal/worker"
)

// Sources is what is read when somebody asks. All are needed.
type Sources struct {
	// Desired lists the pods that are wanted, Active those that hold resources.
	Desired, Active func() []*v1.Pod
	// Mirrors is how many images of static pods the API server has.
	Mirrors func() int
	// Working lists what workers have in hand.
	Working func() []worker.Standing
	// Observed lists what the runtime holds, LastRelist when it was last listed in full.
	Observed   func() []pod.Observed
	LastRelist func() time.Time
	Volumes    func() volume.Tally
	// Pulls is how many image pulls are noted on disk as underway and as done.
	Pulls func() (underway, done int)
	// LogBytes is what a container's logs occupy on the disk.
	LogBytes func(ref pod.Ref, container string) (int64, error)
	// Plugins are the sockets of plugins, and whether those are registered.
	Plugins func() map[string]bool
	// ClaimsInUse counts the resource claims that pods use, by driver.
	ClaimsInUse func() map[string]int
	// Claims tells how full the volumes of claims are, each claim once.
	Claims func() []statsapi.VolumeStats
	// Pending lists the pods whose resize is not granted, by why; Resizing is how many do not
	// have yet what they were given.
	Pending  func() map[string][]*v1.Pod
	Resizing func() int
}

// reader is the collector of all that is read.
type reader struct{ Sources }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	desiredPods       = describe(kubelet+"desired_pods", "Pods that are wanted here.", "static")
	activePods        = describe(kubelet+"active_pods", "Pods that hold, or are about to hold, resources.", "static")
	mirrorPods        = describe(kubelet+"mirror_pods", "Images of static pods in the API server.")
	ephemeral         = describe(kubelet+"managed_ephemeral_containers", "Ephemeral containers of the wanted pods.")
	workingPods       = describe(kubelet+"working_pods", "Pods that are being looked after, by where they stand.", "lifecycle", "config", "static")
	runningPods       = describe(kubelet+"running_pods", "Pods with a running sandbox.")
	runningContainers = describe(kubelet+"running_containers", "Containers that the runtime has, by state.", "container_state")
	lastRelist        = describe(kubelet+"pleg_last_seen_seconds", "When the runtime was last listed in full, Unix time.")
	volumes           = describe("volume_manager_total_volumes", "Volumes that pods want and that are mounted.", "plugin_name", "state")
	pullIntents       = describe(kubelet+"imagemanager_ondisk_pullintents", "Image pulls that are noted on disk as underway.")
	pulledRecords     = describe(kubelet+"imagemanager_ondisk_pulledrecords", "Pulled images that are noted on disk.")
	plugins           = describe("plugin_manager_total_plugins", "Plugins that are there and that are registered, by socket.", "socket_path", "state")
	logBytes          = describe(kubelet+"container_log_filesystem_used_bytes", "What containers' logs occupy on the disk.", "uid", "namespace", "pod", "container")
)

// Read shows what the sources tell, each time somebody asks.
func (m *Metrics) Read(s Sources) error {
	if err := require.Set("read metrics", map[string]any{
		"Desired": s.Desired, "Active": s.Active, "Mirrors": s.Mirrors, "Working": s.Working, "Observed": s.Observed,
		"LastRelist": s.LastRelist, "Volumes": s.Volumes, "Pulls": s.Pulls, "LogBytes": s.LogBytes, "Plugins": s.Plugins,
		"Claims": s.Claims, "Pending": s.Pending, "Resizing": s.Resizing, "ClaimsInUse": s.ClaimsInUse,
	}); err != nil {
		return err
	}
	return m.registry.Register(reader{s})
}

// Describe tells the registry what there is.
func (reader) Describe(to chan<- *prometheus.Desc) {
	for _, f := range claimFigures {
		to <- f.desc
	}
	for _, d := range []*prometheus.Desc{desiredPods, activePods, mirrorPods, ephemeral, workingPods, runningPods, runningContainers, lastRelist, volumes, pullIntents, pulledRecords, plugins, logBytes, pendingResizes, resizing, claimsInUse} {
		to <- d
	}
}

// Collect reads the sources.
func (r reader) Collect(to chan<- prometheus.Metric) {
	show := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	wanted := r.Desired()
	for d, list := range map[*prometheus.Desc][]*v1.Pod{desiredPods: wanted, activePods: r.Active()} {
		fixed := countStatic(list)
		show(d, float64(len(list)-fixed), static(false))
		show(d, float64(fixed), static(true))
	}
	show(mirrorPods, float64(r.Mirrors()))
	for driver, n := range r.ClaimsInUse() {
		show(claimsInUse, float64(n), driver)
	}
	debugged := 0
	for _, p := range wanted {
		debugged += len(p.Spec.EphemeralContainers)
	}
	show(ephemeral, float64(debugged))
	if at := r.LastRelist(); !at.IsZero() {
		show(lastRelist, float64(at.Unix()))
	}
	for labels, n := range tallyWorking(r.Working()) {
		show(workingPods, float64(n), labels.lifecycle, labels.config, labels.static)
	}
	r.collectObserved(show)
	underway, done := r.Pulls()
	show(pullIntents, float64(underway))
	show(pulledRecords, float64(done))
	tally := r.Volumes()
	for state, kinds := range map[string]map[string]int{wantedState: tally.Wanted, actualState: tally.Mounted} {
		for kind, n := range kinds {
			show(volumes, float64(n), kind, state)
		}
	}
	for path, registered := range r.Plugins() {
		show(plugins, 1, path, wantedState)
		if registered {
			show(plugins, 1, path, actualState)
		}
	}
	collectClaims(r.Claims(), show)
	collectResizes(r.Pending(), r.Resizing(), show)
}

// What should be and what is, in the reference kubelet's words.
const (
	wantedState = "desired_state_of_world"
	actualState = "actual_state_of_world"
)

// states are the words for the runtime's states.
var states = map[pod.ContainerState]string{pod.Created: "created", pod.Running: "running", pod.Exited: "exited", pod.Unknown: "unknown"}

// collectObserved shows what the runtime holds.
func (r reader) collectObserved(show func(*prometheus.Desc, float64, ...string)) {
	up, byState := 0, map[pod.ContainerState]int{}
	for _, o := range r.Observed() {
		if b := o.Sandbox(); b != nil && b.Ready {
			up++
		}
		logged := map[string]bool{}
		for _, c := range o.Containers {
			byState[c.State]++
			if logged[c.Name] {
				continue
			}
			logged[c.Name] = true
			if n, err := r.LogBytes(o.Ref, c.Name); err == nil { // the pod may be gone by now
				show(logBytes, float64(n), string(o.UID), o.Namespace, o.Name, c.Name)
			}
		}
	}
	show(runningPods, float64(up))
	for state, n := range byState {
		show(runningContainers, float64(n), states[state])
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

// standing is where a pod stands, in the reference kubelet's words.
type standing struct{ lifecycle, config, static string }

// tallyWorking counts pods by where they stand. All combinations that there can be are
// shown, those without a pod too.
func tallyWorking(all []worker.Standing) map[standing]int {
	tally := map[standing]int{}
	for _, lifecycle := range []string{"sync", "terminating", "terminated"} {
		for _, s := range []standing{{config: "desired"}, {config: "desired", static: "true"}, {config: "orphan"}, {config: "orphan", static: "true"}, {config: "runtime_only", static: "unknown"}} {
			s.lifecycle = lifecycle
			tally[s] = 0
		}
	}
	for _, w := range all {
		s := standing{lifecycle: "terminated", config: "desired", static: static(w.Static)}
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
		tally[s]++
	}
	return tally
}
