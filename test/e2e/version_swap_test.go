package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// swapVersions are the releases of the reference kubelet that TestVersionSwap swaps with ours. Each has a
// module in test/reference.
func swapVersions(t *testing.T) []string {
	t.Helper()
	versions := strings.Fields(os.Getenv("SWIFTLET_SWAP_VERSIONS"))
	if len(versions) == 0 || kubelet != bed.Ours {
		t.Skip("runs kubelets of the releases in SWIFTLET_SWAP_VERSIONS")
	}
	return versions
}

// livePodCount is the number of pods on the node, with the static pod.
const livePodCount = 60

// TestVersionSwap replaces a reference kubelet of an earlier release by ours under 60 running pods, and
// back, twice. No container restarts. Under ours no pod becomes unready; under the earlier release no more
// do than when that release itself is restarted. Each reads the state files of the other: pods keep their
// CPUs, devices, claims and resized resources, and each kubelet stops pods of the other.
func TestVersionSwap(t *testing.T) { // not parallel: it needs most of the machine
	for _, version := range swapVersions(t) {
		t.Run(dashed(version), func(t *testing.T) { newVersionSwap(t, bed.KubeletKind(version)).run() })
	}
}

// dashed turns a version into a part of names of objects.
func dashed(version string) string { return strings.ReplaceAll(version, ".", "-") }

// versionSwap is one node with its pods.
type versionSwap struct {
	t      *testing.T
	node   *bed.Box
	old    bed.KubeletKind
	space  string
	plugin *devicePlugin
	driver *claimDriver
	before map[string]*corev1.Pod
	mirror *corev1.Pod
	facts  string // what must survive a swap
	logged int    // length of the kubelet's log that was searched
}

func newVersionSwap(t *testing.T, old bed.KubeletKind) *versionSwap {
	name := "swap-" + dashed(string(old))
	s := &versionSwap{t: t, old: old, node: bareNode(t, name), before: map[string]*corev1.Pod{}}
	s.start(old)
	s.space = namespace(t)
	s.plugin = startPlugin(t, s.node, "-register", "/var/lib/kubelet/plugins_registry/sample-reg.sock", "-dir", pluginState)
	s.plugin.awaitDevices(2, 2)
	s.driver = startClaimDriver(t, s.node, name+".dra.test")
	s.driver.awaitSlices(true)
	return s
}

func (s *versionSwap) run() {
	t := s.t
	s.createPods()
	s.facts = s.readFacts()
	s.checkLog(s.old)
	t.Logf("%s: %d pods run; %s", s.old, len(s.before)+1, s.facts)

	restarted := s.swap(s.old) // the release itself makes this many pods unready
	if lost := s.swap(bed.Ours); lost != 0 {
		t.Errorf("%d pods became unready under ours", lost)
	}
	s.stopAndReplace("plain", "heir")
	resizedPod := resize(t, s.space, "resized-1", amounts{120, 240, 80})
	awaitPod(t, s.space, "resized-1", 2*timeout, resized(resizedPod))
	s.facts = s.readFacts()

	if lost := s.swap(s.old); lost > restarted {
		t.Errorf("%d pods became unready under %s, %d when it was restarted", lost, s.old, restarted)
	}
	s.stopAndReplace("heir", "heir-2")
	resizedPod = resize(t, s.space, "resized", amounts{130, 260, 88})
	awaitPod(t, s.space, "resized", 4*timeout, resized(resizedPod))
	s.facts = s.readFacts()

	if lost := s.swap(bed.Ours); lost != 0 {
		t.Errorf("%d pods became unready under ours", lost)
	}
	for name := range s.before {
		if err := client().CoreV1().Pods(s.space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name := range s.before {
		awaitPod(t, s.space, name, 4*timeout, gone)
	}
	s.driver.awaitCalls("claim", "prepare", "unprepare")
}

// start starts a kubelet and waits until the node is ready.
func (s *versionSwap) start(kind bed.KubeletKind) {
	s.t.Helper()
	if err := s.node.StartKubelet(s.t.Context(), bed.KubeletOptions{Kind: kind, Config: exclusiveConfig}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.node.WaitReady(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// createPods creates the pods, waits until all are ready and resizes two of them.
func (s *versionSwap) createPods() {
	t := s.t
	t.Helper()
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Data: map[string]string{"key": "value"}}
	if _, err := client().CoreV1().ConfigMaps(s.space).Create(t.Context(), data, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "data"}, StringData: map[string]string{"key": "value"}}
	if _, err := client().CoreV1().Secrets(s.space).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.driver.claim(s.space, "claim")
	write(t, s.node.Path("/etc/kubernetes/manifests/swapped.yaml"), fmt.Appendf(nil, staticSleeper, images.Busybox))
	all := s.pods()
	for _, pod := range all {
		create(t, s.space, pod)
	}
	eventually(t, 5*time.Minute, func() string { return notReady(t, s.space) })
	for _, name := range []string{"resized", "resized-1"} {
		awaitPod(t, s.space, name, 2*timeout, resized(resize(t, s.space, name, amounts{150, 300, 96})))
	}
	for _, pod := range all {
		s.before[pod.Name] = awaitPod(t, s.space, pod.Name, timeout, ready)
	}
	s.mirror = awaitPod(t, staticNamespace, "swapped-"+s.node.Name(), timeout, ready)
}

// pods returns pods of all kinds that a swap could disturb. The rest are pods of the usual kinds.
func (s *versionSwap) pods() []*corev1.Pod {
	node := s.node.Name()
	all := []*corev1.Pod{
		guaranteedPod("exclusive", node, "1"), guaranteedPod("guaranteed", node, "100m"),
		podWithDevices("device", node, 1), podWithClaim("claim", node, "claim"),
		resizable("resized", node, amounts{100, 200, 64}), resizable("resized-1", node, amounts{100, 200, 64}),
	}
	kinds := func() []*corev1.Pod { return append(livePods(node), podWithVolumeKinds(node), podWithProbes(node)) }
	for i := 0; len(all) < livePodCount-1; i++ {
		for _, pod := range kinds() {
			if len(all) < livePodCount-1 {
				if i > 0 {
					pod.Name = fmt.Sprintf("%s-%d", pod.Name, i)
				}
				for c := range pod.Spec.Containers {
					relax(pod.Spec.Containers[c].ReadinessProbe)
				}
				all = append(all, pod)
			}
		}
	}
	return all
}

// relax gives a probe time on a busy machine.
func relax(p *corev1.Probe) {
	if p != nil {
		p.PeriodSeconds, p.TimeoutSeconds = 5, 10
	}
}

// podWithVolumeKinds is a pod with a volume of each of the usual kinds.
func podWithVolumeKinds(node string) *corev1.Pod {
	p := sleeper("volumes", node)
	for name, source := range map[string]corev1.VolumeSource{
		"map":      {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "data"}}},
		"secret":   {Secret: &corev1.SecretVolumeSource{SecretName: "data"}},
		"scratch":  {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"host":     {HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib", Type: ptr.To(corev1.HostPathDirectory)}},
		"downward": {DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}},
	} {
		addVolume(p, name, source, "")
	}
	return p
}

// podWithProbes is a pod with probes of all kinds and two ways to probe.
func podWithProbes(node string) *corev1.Pod {
	p := sleeper("all-probes", node)
	c := &p.Spec.Containers[0]
	c.Command[2] = "mkdir -p /www && httpd -p 8080 -h /www && touch /www/index.html; " + c.Command[2]
	get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/index.html", Port: intstr.FromInt32(8080)}}
	run := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
	c.StartupProbe = &corev1.Probe{ProbeHandler: get, FailureThreshold: 30, PeriodSeconds: 2, TimeoutSeconds: 10}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: get}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: run, PeriodSeconds: 10, TimeoutSeconds: 10}
	return p
}

// swap replaces the running kubelet and returns how many pods became unready. It checks that all keep
// their containers and what the state files say of them.
func (s *versionSwap) swap(to bed.KubeletKind) (lost int) {
	t := s.t
	t.Helper()
	watched := map[string]func() []*corev1.Pod{}
	for name := range s.before {
		watched[name] = record[corev1.Pod](t, pods(s.space), name)
	}
	static := record[corev1.Pod](t, pods(staticNamespace), s.mirror.Name)
	began := time.Now()
	if err := s.node.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	s.start(to)
	// When a new pod is ready, the new kubelet has synced the older ones.
	create(t, s.space, sleeper("witness", s.node.Name()))
	awaitPod(t, s.space, "witness", 4*timeout, ready)
	deletePod(t, s.space, "witness")
	for name := range s.before {
		awaitPod(t, s.space, name, 4*timeout, ready)
	}
	var unready []string
	for _, name := range slices.Sorted(maps.Keys(watched)) {
		if s.check(s.before[name], watched[name]()) {
			unready = append(unready, name)
		}
	}
	if s.check(s.mirror, static()) {
		unready = append(unready, s.mirror.Name)
	}
	if now := s.readFacts(); now != s.facts {
		t.Errorf("under %s: %s; before: %s", to, now, s.facts)
	}
	s.checkLog(to)
	s.checkExec(to)
	t.Logf("%s: %d pods adopted within %.1f s, unready in between: %d %s", to, len(watched)+1, time.Since(began).Seconds(), len(unready), strings.Join(unready, " "))
	return len(unready)
}

// check checks that all versions of a pod have the same containers, and returns whether one was unready.
func (s *versionSwap) check(before *corev1.Pod, versions []*corev1.Pod) (unready bool) {
	s.t.Helper()
	for _, version := range versions {
		if version == nil { // the mirror pod was created again
			unready = true
			continue
		}
		unready = unready || ready(version) != ""
		checkSameContainers(s.t, before, version)
	}
	return unready
}

// readFacts describes what pods have by the state files: CPUs, devices, claims, resized resources.
func (s *versionSwap) readFacts() string {
	t := s.t
	t.Helper()
	var found []string
	add := func(what, is string) { found = append(found, what+" "+is) }
	exclusive := awaitPod(t, s.space, "exclusive", timeout, ready)
	cpus, err := s.node.Exec(t.Context(), "cat", "/sys/fs/cgroup/cpuset"+cgroupsOf(t, s.node, exclusive)["container"]+"/cpuset.cpus")
	if err != nil {
		t.Fatal(err)
	}
	add("CPUs", strings.TrimSpace(cpus))
	add("static pod", s.staticUID())
	add("device", deviceOf(t, s.node, s.space, "device"))
	add("claim", s.driver.device("claim"))
	for _, name := range []string{"resized", "resized-1"} {
		pod := awaitPod(t, s.space, name, timeout, ready)
		add(name, readCgroup(t, s.node, cgroupsOf(t, s.node, pod)["container"]))
		if c := resizeCondition(pod); c != nil {
			add(name, string(c.Type)+" "+c.Message)
		}
	}
	return strings.Join(found, ", ")
}

// staticUID returns the UID of the static pod by the kubelet.
func (s *versionSwap) staticUID() string {
	s.t.Helper()
	code, body := requestNode(s.t, s.node, http.MethodGet, "/pods")
	var list corev1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
		s.t.Fatalf("/pods: %d %v: %s", code, err, body)
	}
	for _, pod := range list.Items {
		if pod.Name == s.mirror.Name {
			return string(pod.UID)
		}
	}
	return "missing"
}

// stateProblem matches log lines about state that a kubelet could not read.
var stateProblem = regexp.MustCompile(`(?i)corrupt|checksum|could not restore|(failed|unable) to (restore|unmarshal|read|load)[^"]*(state|checkpoint)`)

// checkLog searches what the kubelets have logged since the last call. The first kubelet finds no state.
func (s *versionSwap) checkLog(kind bed.KubeletKind) {
	s.t.Helper()
	text, err := os.ReadFile(s.node.Log("kubelet"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text[s.logged:])) {
		if s.logged > 0 && stateProblem.MatchString(line) {
			s.t.Errorf("%s logged: %s", kind, line)
		}
	}
	s.logged = len(text)
}

// checkExec runs a command in a pod. The API server takes the Node's word for how to reach the kubelet, and
// kubelets before v1.36 leave the features that a later one has declared; README.md says how to remove them.
func (s *versionSwap) checkExec(to bed.KubeletKind) {
	s.t.Helper()
	if strings.HasPrefix(string(to), "v1.35.") {
		const none = `{"status": {"declaredFeatures": null}}`
		if _, err := client().CoreV1().Nodes().Patch(s.t.Context(), s.node.Name(), types.MergePatchType, []byte(none), metav1.PatchOptions{}, "status"); err != nil {
			s.t.Fatal(err)
		}
	}
	eventually(s.t, timeout, func() string { // the API server reads the Node from its cache
		if _, err := execInPod(s.t.Context(), s.space, "guaranteed", "true"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// stopAndReplace deletes a pod that the other kubelet has started, and starts a new one.
func (s *versionSwap) stopAndReplace(old, name string) {
	s.t.Helper()
	deletePod(s.t, s.space, old)
	delete(s.before, old)
	create(s.t, s.space, sleeper(name, s.node.Name()))
	s.before[name] = awaitPod(s.t, s.space, name, 2*timeout, ready)
}
