package page

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestPanicOfOnePod: a pod that cannot be described ends neither the agent nor the updates of other pods, and is
// described again when it changes.
func TestPanicOfOnePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := nodeWithPage(t)
		f.set("a", panics)
		f.set("b", "First")
		b := p.visit("")
		defer b.close()
		check(t, "at first", b.take("First"), "pods First")
		f.set("b", "Second")
		time.Sleep(time.Minute)
		check(t, "another pod", b.take("Second", "First"), "pod Second")
		f.mu.Lock()
		if f.panics < 1 || f.panics > 2 {
			t.Errorf("%d panics were reported in a minute, want one or two", f.panics)
		}
		f.mu.Unlock()
		f.set("a", "Next")
		time.Sleep(beat)
		check(t, "the pod", b.take("Next"), "pod Next")
	})
}

// TestPanicOfNode: what describes the node may fail, too.
func TestPanicOfNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := nodeWithPage(t)
		f.set("a", "First")
		f.mu.Lock()
		f.nodePanics = true
		f.mu.Unlock()
		b := p.visit("")
		defer b.close()
		time.Sleep(time.Minute)
		check(t, "at first", b.take("First"), "pods First")
		second := p.visit("")
		defer second.close()
		check(t, "a second page", second.take("First"), "pods First")
		f.mu.Lock()
		f.nodePanics = false
		f.mu.Unlock()
		time.Sleep(time.Minute)
		check(t, "the node", b.takeOnly("usage", `"a":`), `usage "a":, usage "a":, usage "a":, usage "a":, usage "a":, usage "a":`)
	})
}

// TestPanicOfRequest: net/http contains the panic of a request, so no lock may be left held.
func TestPanicOfRequest(t *testing.T) {
	f, p := newPage(t)
	f.set("a", "First")
	for path, breakIt := range map[string]func(){
		"/ui/api/history":   func() { p.samples.ring = ring{series: 1, points: nodePoints, last: 9, values: []float32{}} },
		"/ui/api/pods/ns/a": func() { p.usage.pods = map[types.UID]*podSeries{"a": {containers: map[string]*ring{"app": nil}}} },
	} {
		breakIt()
		var panicked any
		func() {
			defer func() { panicked = recover() }()
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		}()
		if panicked == nil {
			t.Errorf("%s does not panic", path)
		}
		if !p.mu.TryLock() {
			t.Fatalf("after the panic of %s the lock is held", path)
		}
		p.mu.Unlock()
	}
}
