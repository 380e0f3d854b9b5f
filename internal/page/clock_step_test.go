package page

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// everything returns all that was sent since the last call.
func (b *browser) everything() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// decodeLast decodes the last event of a kind.
func decodeLast(t *testing.T, text, kind string, into any) {
	t.Helper()
	at := strings.LastIndex(text, "event: "+kind+"\n")
	if at < 0 {
		t.Fatalf("there is no event %s", kind)
	}
	_, data, _ := strings.Cut(text[at:], "\ndata: ")
	data, _, _ = strings.Cut(data, "\n\n")
	if err := json.Unmarshal([]byte(data), into); err != nil {
		t.Fatal(err)
	}
}

// TestClockStep: the page shows the present values whichever way the clock is set, with and without an open page.
func TestClockStep(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"an hour ahead": time.Hour, "an hour back": -time.Hour, "half an hour back": -30 * time.Minute, "a minute back": -time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := nodeWithPage(t)
				f.set("a", "First")
				f.setCores(1)
				time.Sleep(10 * time.Minute)
				b := p.visit("?pod=ns/a")
				defer b.close()
				time.Sleep(2 * time.Minute)
				f.clock.Step(step)
				f.setCores(2)
				time.Sleep(5 * time.Minute)
				p.checkValues(t, f, b, 2)
				f.setCores(3)
				time.Sleep(10 * time.Minute)
				p.checkValues(t, f, b, 3)
			})
		})
	}
}

// checkValues checks the newest values that a browser gets.
func (p *Page) checkValues(t *testing.T, f *fakeNode, b *browser, cores float64) {
	t.Helper()
	now := f.clock.Wall()
	text := b.everything()
	var sample Sample
	decodeLast(t, text, "sample", &sample)
	if age := now.Unix() - sample.T; age < 0 || age >= 2*int64(interval/time.Second) || sample.CPU == nil || float64(*sample.CPU) != cores {
		t.Errorf("the newest point is %d seconds old and has CPU %v, want %v", age, shown(sample.CPU), cores)
	}
	var containers PodSample
	decodeLast(t, text, "containers", &containers)
	if age := now.Unix() - containers.T; age < 0 || age >= 2*int64(interval/time.Second) || containers.Containers["app"].CPU == nil {
		t.Errorf("the newest point of the pod is %d seconds old and has CPU %v", age, shown(containers.Containers["app"].CPU))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if use := p.samples.use(); use.CPU == nil || *use.CPU != cores {
		t.Errorf("the node uses CPU %v, want %v", shown(use.CPU), cores)
	}
	h := p.samples.history(f.clock.Now()).Node
	for i := range h.T[1:] {
		if i > len(h.T)-20 && h.CPU[i] == nil || h.T[i+1]-h.T[i] != int64(interval/time.Second) {
			t.Fatalf("point %d of %d is at %d, the next at %d; CPU %v", i, len(h.T), h.T[i], h.T[i+1], shown(h.CPU[i]))
		}
	}
}

func shown[T any](v *T) any {
	if v == nil {
		return "unknown"
	}
	return *v
}

func (f *fakeNode) setCores(n float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cores = n
}
