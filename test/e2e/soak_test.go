package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"swiftlet/internal/cri"
	"swiftlet/test/bed"
	"swiftlet/test/trust/tally"
)

// TestSoak creates and deletes pods at random while the agent, containerd, shims and the API server are
// killed, one after another at random. At the end the node uses what it used at the start, and pods that
// no fault concerned were never restarted. SWIFTLET_SOAK=30m is the full length; the default is 30 s.
func TestSoak(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("tests only our kubelet")
	}
	t.Parallel()
	lasts := durationFrom(t, "SWIFTLET_SOAK", 30*time.Second)
	s := newSoak(t)
	s.startSteady(t)
	before, beforeUse := podResources(t, s.node), s.warmUse(t)
	deadline := time.Now().Add(lasts)
	ctx, stop := context.WithDeadline(t.Context(), deadline)
	defer stop()
	churned := make(chan int)
	go func() { churned <- s.churn(ctx) }()
	for n := 0; time.Now().Before(deadline); n++ {
		s.inject(t, n)
	}
	t.Logf("created %d pods; %s", <-churned, s.summary())
	s.deleteChurned(t)
	eventually(t, 3*time.Minute, func() string { return s.listPods(t, "churned") })
	s.checkSteady(t)
	s.checkLeaks(t, before, beforeUse)
}

// soak is a cluster with one node under churn. It has its own control plane, which it kills.
type soak struct {
	bed     *bed.Bed
	node    *bed.Box
	runtime *cri.Client
	tally   *tally.Tally
	random  *rand.Rand
	made    map[string]int // number of faults by kind
}

// soakPods is the number of pods of each kind: steady, and churned at a time.
const soakPods = 8

func newSoak(t *testing.T) *soak {
	t.Helper()
	own := ownBed(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &soak{bed: own, random: rand.New(rand.NewPCG(seed, 0)), tally: tally.New(t, "soak"), made: map[string]int{}}
	var err error
	if s.node, err = own.AddNode(t.Context(), "soaked"); err != nil {
		t.Fatal(err)
	}
	if err := s.startAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.runtime, err = cri.Dial(cri.Config{RuntimeEndpoint: s.node.Inside("/run/containerd/containerd.sock"), RequestTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.runtime.Close() })
	return s
}

func (s *soak) startAgent(ctx context.Context) error {
	if err := s.node.StartKubelet(ctx, bed.KubeletOptions{Kind: kubelet}); err != nil {
		return err
	}
	return s.node.WaitReady(ctx)
}

func (s *soak) client() kubernetes.Interface { return s.bed.ControlPlane.Client }

const soakSpace = metav1.NamespaceDefault

// startSteady starts the pods that no fault concerns.
func (s *soak) startSteady(t *testing.T) {
	t.Helper()
	for n := range soakPods {
		pod := randomPodWithVolumes(fmt.Sprintf("steady-%d", n), s.node.Name())
		pod.Labels = map[string]string{"soak": "steady"}
		eventually(t, timeout, func() string { // the namespace may lack its service account
			_, err := s.client().CoreV1().Pods(soakSpace).Create(t.Context(), pod, metav1.CreateOptions{})
			return errorText(err)
		})
	}
	eventually(t, 2*timeout, func() string { return s.unready(t) })
}

// randomPodWithVolumes returns a pod that keeps running and has volumes.
func randomPodWithVolumes(name, node string) *corev1.Pod {
	pod := sleeper(name, node)
	addVolume(pod, "memory", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}, "")
	return addVolume(pod, "disk", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, "part")
}

// unready lists the steady pods that are not ready.
func (s *soak) unready(t *testing.T) string {
	t.Helper()
	list, err := s.client().CoreV1().Pods(soakSpace).List(t.Context(), metav1.ListOptions{LabelSelector: "soak=steady"})
	if err != nil {
		return err.Error()
	}
	var missing []string
	for i := range list.Items {
		if why := ready(&list.Items[i]); why != "" {
			missing = append(missing, list.Items[i].Name+": "+why)
		}
	}
	if len(list.Items) != soakPods {
		missing = append(missing, fmt.Sprintf("%d of %d pods exist", len(list.Items), soakPods))
	}
	return strings.Join(missing, "\n")
}

// churn creates and deletes pods until ctx is done. A request fails while the API server is down.
func (s *soak) churn(ctx context.Context) (made int) {
	pods := s.client().CoreV1().Pods(soakSpace)
	random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
	for ctx.Err() == nil {
		pod := randomPod(fmt.Sprintf("churned-%d", made), s.node.Name(), random)
		pod.Labels = map[string]string{"soak": "churned"}
		for i, v := range pod.Spec.Volumes {
			if v.HostPath != nil {
				pod.Spec.Volumes[i].HostPath = &corev1.HostPathVolumeSource{Path: "/etc/kubernetes"}
			}
		}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err == nil {
			made++
		}
		if oldest := made - soakPods; oldest >= 0 {
			_ = pods.Delete(ctx, fmt.Sprintf("churned-%d", oldest), metav1.DeleteOptions{}) // deleteChurned repeats it
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(200+random.IntN(600)) * time.Millisecond):
		}
	}
	return made
}

func (s *soak) deleteChurned(t *testing.T) {
	t.Helper()
	eventually(t, timeout, func() string {
		return errorText(s.client().CoreV1().Pods(soakSpace).DeleteCollection(t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "soak=churned"}))
	})
}

func (s *soak) listPods(t *testing.T, label string) string {
	t.Helper()
	list, err := s.client().CoreV1().Pods(soakSpace).List(t.Context(), metav1.ListOptions{LabelSelector: "soak=" + label})
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// checkSteady checks that the steady pods run and were never restarted.
func (s *soak) checkSteady(t *testing.T) {
	t.Helper()
	if missing := waitFor(timeout, func() string { return s.unready(t) }); missing != "" {
		s.tally.PodsLost(strings.Count(missing, "\n") + 1)
		t.Errorf("steady pods:\n%s", missing)
	}
	list, err := s.client().CoreV1().Pods(soakSpace).List(t.Context(), metav1.ListOptions{LabelSelector: "soak=steady"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				s.tally.Restarts(int(c.RestartCount))
				t.Errorf("%s was restarted %d times: %+v", p.Name, c.RestartCount, c.LastTerminationState)
			}
		}
	}
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
