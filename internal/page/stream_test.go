package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/contain"
	"swiftlet/internal/page/assets"
	"swiftlet/internal/stats"
	"swiftlet/internal/why"
	"swiftlet/test/stepclock"
)

// panics is the message of pods whose description panics.
const panics = "Panics"

// fakeNode has pods, each with a message as its status.
type fakeNode struct {
	clock            stepclock.Clock
	mu               sync.Mutex
	pods             map[types.UID]*v1.Pod
	changed          func(types.UID)
	counters, usages int // readings so far
	cores, used      float64
	panics           int // contained so far
	nodePanics       bool
	read             time.Time // when the counters were read
}

func (f *fakeNode) set(name, message string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	p.Spec.Containers = []v1.Container{{Name: "app"}}
	p.Status = v1.PodStatus{Phase: v1.PodRunning, Reason: message}
	f.mu.Lock()
	f.pods[p.UID] = p
	f.mu.Unlock()
	f.changed(p.UID)
}

func (f *fakeNode) remove(name string) {
	f.mu.Lock()
	delete(f.pods, types.UID(name))
	f.mu.Unlock()
	f.changed(types.UID(name))
}

func (f *fakeNode) List() (all []*v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		all = append(all, p)
	}
	return all
}

func (f *fakeNode) Get(uid types.UID) (*v1.Pod, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, found := f.pods[uid]
	return p, found
}

func (f *fakeNode) Report(uid types.UID, status *v1.PodStatus) (why.Report, bool) {
	if status.Reason == panics {
		panic("report of " + string(uid))
	}
	return why.Report{UID: uid, At: time.Now(), Cause: why.Cause{Up: true}}, true
}

func (f *fakeNode) Node() why.NodeReport {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodePanics {
		panic("node")
	}
	return why.NodeReport{Sentence: "node n1: is ready"}
}

func (f *fakeNode) countPanic(string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.panics++
}

func (f *fakeNode) Counters() stats.Counters {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodePanics {
		panic("counters")
	}
	f.counters++
	now := f.clock.Now()
	if !f.read.IsZero() {
		f.used += f.cores * now.Sub(f.read).Seconds()
	}
	f.read = now
	return stats.Counters{At: now, CPUSeconds: f.used}
}

func (f *fakeNode) UsageSummary(context.Context) (*statsapi.Summary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodePanics {
		panic("usage")
	}
	f.usages++
	s := &statsapi.Summary{}
	for uid, p := range f.pods {
		nanoCores, bytes := uint64(f.usages)*1e9, uint64(1<<20)
		cpu, memory := &statsapi.CPUStats{UsageNanoCores: &nanoCores}, &statsapi.MemoryStats{WorkingSetBytes: &bytes}
		s.Pods = append(s.Pods, statsapi.PodStats{
			PodRef: statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(uid)}, CPU: cpu, Memory: memory,
			Containers: []statsapi.ContainerStats{{Name: "app", CPU: cpu, Memory: memory}},
		})
	}
	return s, nil
}

// counts returns how often the node and the pods were read.
func (f *fakeNode) counts() (node, pods int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counters, f.usages
}

func (f *fakeNode) readings() string {
	node, pods := f.counts()
	return fmt.Sprintf("node %d pods %d", node, pods)
}

// fakeStatuses are those of a fakeNode.
type fakeStatuses struct{ *fakeNode }

func (f fakeStatuses) Get(uid types.UID) (v1.PodStatus, bool) {
	p, found := f.fakeNode.Get(uid)
	if !found {
		return v1.PodStatus{}, false
	}
	return p.Status, true
}

func (f fakeStatuses) SubscribePods(changed func(types.UID)) { f.changed = changed }

// browser reads a stream. It reads nothing while it is stuck.
type browser struct {
	header http.Header
	stuck  chan struct{} // of one: a mutex that waits in the bubble's time

	mu    sync.Mutex
	code  int
	text  strings.Builder
	leave context.CancelFunc
	done  chan struct{}
}

func (b *browser) Header() http.Header { return b.header }

func (b *browser) WriteHeader(code int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.code = code
}

func (b *browser) Write(p []byte) (int, error) {
	b.stuck <- struct{}{}
	defer func() { <-b.stuck }()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *browser) Flush() {}

// take returns the events about pods since the last call, and the words that are in their data.
func (b *browser) take(words ...string) string { return b.takeOnly("pods pod gone detail", words...) }

// takeOnly returns the events of some kinds since the last call. When usage was read is not compared with others.
func (b *browser) takeOnly(kinds string, words ...string) string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for event := range strings.SplitSeq(b.text.String(), "\n\n") {
		name, data, _ := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		if name == "" || !slices.Contains(strings.Fields(kinds), name) {
			continue
		}
		for _, w := range words {
			if strings.Contains(data, w) {
				name += " " + w
			}
		}
		all = append(all, name)
	}
	b.text.Reset()
	return strings.Join(all, ", ")
}

// nodeWithPage runs a page in the bubble of the test.
func nodeWithPage(t *testing.T) (*fakeNode, *Page) {
	f, p := newPage(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f, p
}

// newPage makes a page that does not run.
func newPage(t *testing.T) (*fakeNode, *Page) {
	t.Helper()
	f := &fakeNode{pods: map[types.UID]*v1.Pod{}}
	p, err := New(Deps{
		Pods: f, Statuses: fakeStatuses{f}, Why: f, Usage: f, Node: func() *v1.Node { return &v1.Node{} }, Events: func() []v1.Event { return nil },
		Open: assets.Open, Clock: &f.clock, Log: slog.New(slog.DiscardHandler),
		Panics: contain.Reporter{Count: f.countPanic},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, p
}

func (p *Page) visit(query string) *browser {
	ctx, leave := context.WithCancel(context.Background())
	b := &browser{header: http.Header{}, stuck: make(chan struct{}, 1), leave: leave, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		p.ServeHTTP(b, httptest.NewRequestWithContext(ctx, "GET", "/ui/api/stream"+query, nil))
	}()
	return b
}

func (b *browser) close() {
	b.leave()
	<-b.done
}

func check(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := nodeWithPage(t)
		f.set("a", "First")
		b := p.visit("")
		defer b.close()
		check(t, "at first", b.take("First"), "pods First")
		time.Sleep(beat)
		for i := range 100 {
			f.set("a", fmt.Sprint("Change", i))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(beat)
		if got := b.take("Change99"); got != "pod Change99" && got != "pod, pod Change99" { // in one beat or two
			t.Errorf("a hundred changes: got %s", got)
		}
		f.set("b", "Second")
		time.Sleep(beat)
		check(t, "a new pod", b.take("Second"), "pod Second")
		f.remove("a")
		time.Sleep(beat)
		check(t, "a removed pod", b.take(`{"uid":"a"}`), `gone {"uid":"a"}`)
		time.Sleep(interval)
		check(t, "usage", b.takeOnly("usage", `"b":[2,1048576]`), `usage "b":[2,1048576]`)
		time.Sleep(interval)
		check(t, "samples", b.takeOnly("sample", `"t":`), `sample "t":`)
	})
}

// TestStreamOfPod: the page of a pod gets it whole, once for each change.
func TestStreamOfPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := nodeWithPage(t)
		f.set("a", "First")
		f.set("b", "First")
		b := p.visit("?pod=ns/a")
		defer b.close()
		check(t, "at first", b.take(`"yaml":"apiVersion: v1`), `pods, detail "yaml":"apiVersion: v1`)
		time.Sleep(wholeBeats * beat)
		b.take() // usage is known now
		f.set("b", "Other")
		time.Sleep(2 * beat)
		check(t, "another pod", b.take(), "pod")
		f.set("a", "Next")
		time.Sleep(2 * beat)
		check(t, "the pod", b.take("Next"), "pod Next, detail Next")
		f.remove("a")
		time.Sleep(2 * beat)
		check(t, "the removed pod", b.take("null"), "gone, detail null")
	})
}

// TestSlowBrowser: what a browser has not read is not kept for it; it gets the latest of each pod.
func TestSlowBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := nodeWithPage(t)
		f.set("a", "First")
		b := p.visit("")
		defer b.close()
		b.take()
		b.stuck <- struct{}{}
		for i := range 100 {
			f.set("a", fmt.Sprint("Change", i))
			f.set(fmt.Sprint("short", i), "Short")
			time.Sleep(beat)
			f.remove(fmt.Sprint("short", i))
			time.Sleep(beat)
		}
		<-b.stuck
		time.Sleep(interval)
		if got := b.take("Change98", "Change99"); strings.Count(got, "Change") != 1 || !strings.Contains(got, "Change99") {
			t.Errorf("got %s, want the last change alone", got)
		}
	})
}

// TestClosedPage: while no page is open, the node is read once a minute, and its pods never.
func TestClosedPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := nodeWithPage(t)
		for i := range 1000 {
			f.set(fmt.Sprint(i), "First")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		check(t, "never opened", f.readings(), "node 61 pods 0")
		b := p.visit("")
		time.Sleep(time.Minute / 2)
		p.visit("").close()
		time.Sleep(time.Minute / 2)
		b.close()
		synctest.Wait()
		if node, pods := f.counts(); node < 67 || node > 69 || pods < 6 || pods > 7 {
			t.Errorf("open for a minute: the node was read %d times, pods %d times", node-61, pods)
		}
		time.Sleep(linger + time.Second)
		synctest.Wait()
		nodeBefore, podsBefore := f.counts()
		time.Sleep(time.Hour)
		synctest.Wait()
		node, pods := f.counts()
		if got := node - nodeBefore; got < 59 || got > 61 || pods != podsBefore {
			t.Errorf("closed for an hour: the node was read %d times, pods %d times", got, pods-podsBefore)
		}
		if len(p.rows) > 0 || p.usage.pods != nil || p.dirty != nil {
			t.Error("rows of pods are kept while no page is open")
		}
		b = p.visit("")
		defer b.close()
		check(t, "opened again", b.take(), "pods")
	})
}

func TestTooManyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := nodeWithPage(t)
		for range maxStreams {
			defer p.visit("").close()
		}
		synctest.Wait()
		last := p.visit("")
		<-last.done
		if last.code != http.StatusServiceUnavailable || last.header.Get("Retry-After") == "" {
			t.Errorf("one too many: %d %v", last.code, last.header)
		}
	})
}

// TestHeaders: a page of another origin gets nothing, and the page loads nothing from elsewhere.
func TestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := nodeWithPage(t)
		f.set("a", "First")
		for name, c := range map[string]struct {
			path, site, mode string
			code             int
		}{
			"page":                       {"/ui/", "none", "navigate", 200},
			"reloaded":                   {"/ui/", "same-origin", "navigate", 200},
			"linked from elsewhere":      {"/ui/", "cross-site", "navigate", 200},
			"framed by another port":     {"/ui/api/history", "same-site", "navigate", 403},
			"image of another site":      {"/ui/", "cross-site", "no-cors", 403},
			"history":                    {"/ui/api/history", "same-origin", "cors", 200},
			"history by another site":    {"/ui/api/history", "cross-site", "cors", 403},
			"pod":                        {"/ui/api/pods/ns/a", "same-origin", "cors", 200},
			"no browser":                 {"/ui/api/pods/ns/a", "", "", 200},
			"no pod":                     {"/ui/api/pods/ns/b", "same-origin", "cors", 404},
			"a file that does not exist": {"/ui/assets/none.js", "same-origin", "no-cors", 404},
		} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", c.path, nil)
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
				r.Header.Set("Sec-Fetch-Mode", c.mode)
			}
			p.ServeHTTP(w, r)
			if w.Code != c.code {
				t.Errorf("%s: %d, want %d", name, w.Code, c.code)
			}
			if got := w.Header(); !strings.HasPrefix(got.Get("Content-Security-Policy"), "default-src 'none';") || strings.Contains(got.Get("Content-Security-Policy"), "unsafe") ||
				got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers are %v", name, got)
			}
		}
	})
}

// deadBrowser accepts nothing.
type deadBrowser struct{ http.ResponseWriter }

func (deadBrowser) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestSendFails(t *testing.T) {
	if err := (&Page{deps: Deps{Clock: &stepclock.Clock{}}}).send(deadBrowser{httptest.NewRecorder()}, []byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
