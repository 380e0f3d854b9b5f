package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"swiftlet/test/bed"
	"swiftlet/test/trust/tally"
)

const (
	strangerRate = 500 // requests with unique tokens per second
	// strangerReviews bounds the questions to the API server about them, per second and at once.
	strangerReviews, strangerBurst = 5, 100
	strangerMemory                 = 48 << 20 // growth of the agent
)

// TestStrangers sends requests with unique bearer tokens to a node from a pod. Pods that are started
// meanwhile become ready about as fast as before, authorized clients are served, and neither the memory
// of the agent nor the number of TokenReviews grows with the requests. SWIFTLET_STRANGERS is the duration.
func TestStrangers(t *testing.T) {
	t.Parallel()
	lasts, batch := durationFrom(t, "SWIFTLET_STRANGERS", 6*time.Second), 4
	if os.Getenv("SWIFTLET_STRANGERS") != "" {
		batch = 15
	}
	s := newStrangers(t, batch)
	before, undisturbed := scrape(t, s.node), s.startPods("before")
	flood, began := startFlood(t, s.node, s.stranger(t)), time.Now()
	authorized := s.serveAuthorized(t)
	var during []time.Duration
	for i, end := 0, began.Add(lasts); time.Now().Before(end); i++ {
		during = append(during, s.startPods(fmt.Sprint("during", i)))
	}
	slowest := slices.Max(during)
	failed, served := authorized()
	lasted := time.Since(began)
	sent, codes := flood()
	after := scrape(t, s.node)
	undisturbed = max(undisturbed, s.startPods("after")) // other tests may have begun meanwhile
	for _, took := range during {
		s.counted.Fault(took <= s.limit(undisturbed))
	}
	memory := valueOf(after, "process_resident_memory_bytes{}") - valueOf(before, "process_resident_memory_bytes{}")
	reviews := total(after, "apiserver_delegated_authn_request_total") - total(before, "apiserver_delegated_authn_request_total")
	text := fmt.Sprintf("%d requests with unknown tokens in %v, responses by code %v: %d pods ready in at most %v, without in %v; %d requests of authorized clients, failed: %v; %.0f TokenReviews; memory of the agent grew by %.1f MiB",
		sent, lasted.Round(time.Second), codes, batch, slowest.Round(time.Millisecond), undisturbed.Round(time.Millisecond), served, failed, reviews, memory/(1<<20))
	t.Log(text)
	if kubelet == bed.Reference {
		t.Skip("with the reference: " + text)
	}
	if slowest > s.limit(undisturbed) {
		t.Errorf("%d pods were ready in %v, want %v", batch, slowest, s.limit(undisturbed))
	}
	if len(failed) > 0 {
		t.Errorf("requests of authorized clients failed: %v", failed)
	}
	if most := strangerReviews*lasted.Seconds()*2 + strangerBurst; reviews > most {
		t.Errorf("%.0f TokenReviews, want at most %.0f", reviews, most)
	}
	if memory > strangerMemory {
		t.Errorf("memory of the agent grew by %.1f MiB, want at most %d", memory/(1<<20), strangerMemory>>20)
	}
	if rejected := total(after, "swiftlet_server_rejections_total"); rejected < float64(sent)/2 {
		t.Errorf("%.0f rejections are counted of %d requests", rejected, sent)
	}
	if restarted := valueOf(after, "process_start_time_seconds{}") != valueOf(before, "process_start_time_seconds{}"); restarted {
		t.Error("the agent was restarted")
	}
	s.countRestarts(t)
}

// strangers is a node with pods of the test.
type strangers struct {
	t       *testing.T
	node    *bed.Box
	space   string
	batch   int
	counted *tally.Tally
}

func newStrangers(t *testing.T, batch int) *strangers {
	t.Helper()
	s := &strangers{t: t, node: ownNode(t, "strangers"), space: clearedNamespace(t), batch: batch, counted: tally.New(t, "strangers")}
	startPod(t, s.space, sleeper("target", s.node.Name()))
	return s
}

// limit is how long pods may take to become ready, by the time they took before. Other tests run at the
// same time.
func (s *strangers) limit(undisturbed time.Duration) time.Duration {
	return 3*undisturbed + 2*time.Second
}

// startPods starts a batch of pods and returns how long it took until all were ready. It deletes them.
func (s *strangers) startPods(name string) time.Duration {
	s.t.Helper()
	began := time.Now()
	for i := range s.batch {
		create(s.t, s.space, sleeper(fmt.Sprintf("%s-%d", name, i), s.node.Name()))
	}
	for i := range s.batch {
		awaitPod(s.t, s.space, fmt.Sprintf("%s-%d", name, i), 2*time.Minute, ready)
	}
	took := time.Since(began)
	for i := range s.batch {
		if err := client().CoreV1().Pods(s.space).Delete(s.t.Context(), fmt.Sprintf("%s-%d", name, i), metav1.DeleteOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	return took
}

// serveAuthorized makes requests of authorized clients once in a second, on new connections: logs through
// the API server, and metrics with a service account's token. The returned function ends it and returns
// the failures.
func (s *strangers) serveAuthorized(t *testing.T) (end func() (failed []string, served int)) {
	t.Helper()
	token := account(t, s.space, "scraper", "nodes/metrics")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	var failed []string
	served := 0
	go func() {
		defer close(done)
		for tick := time.NewTicker(time.Second); ; {
			scraper := clientWith(t, s.node, func(c *rest.Config) { c.BearerToken = token })
			for name, call := range map[string]func() error{
				"logs": func() error {
					_, err := client().CoreV1().Pods(s.space).GetLogs("target", &corev1.PodLogOptions{}).DoRaw(ctx)
					return err
				},
				"metrics": func() error { return getOK(ctx, scraper, "https://"+s.node.Address()+":10250/metrics/resource") },
			} {
				served++
				if err := call(); err != nil && ctx.Err() == nil {
					failed = append(failed, fmt.Sprintf("%s: %v", name, err))
				}
			}
			scraper.CloseIdleConnections()
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() ([]string, int) {
		cancel()
		<-done
		return failed, served
	}
}

func getOK(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, response.Status)
	}
	return nil
}

// countRestarts counts restarts and lost pods.
func (s *strangers) countRestarts(t *testing.T) {
	t.Helper()
	target, err := client().CoreV1().Pods(s.space).Get(t.Context(), "target", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if missing := ready(target); missing != "" {
		s.counted.PodsLost(1)
		t.Error(missing)
	}
	if restarts := int(target.Status.ContainerStatuses[0].RestartCount); restarts > 0 {
		s.counted.Restarts(restarts)
		t.Errorf("the pod was restarted %d times", restarts)
	}
}

// total sums a counter over its labels.
func total(shown families, name string) (sum float64) {
	for _, m := range shown[name].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}

// stranger starts a pod and returns its network namespace, as a file.
func (s *strangers) stranger(t *testing.T) string {
	t.Helper()
	p := startPod(t, s.space, sleeper("stranger", s.node.Name()))
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		cgroups, err := os.ReadFile("/proc/" + process.Name() + "/cgroup")
		if err == nil && strings.Contains(string(cgroups), id) {
			return "/proc/" + process.Name() + "/ns/net"
		}
	}
	t.Fatalf("no process of container %s", id)
	return ""
}
