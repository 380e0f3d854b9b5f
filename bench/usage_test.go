package bench

import (
	"os"
	"testing"
	"time"
)

func TestBusyTime(t *testing.T) {
	got, err := busyTime([]byte("cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n"))
	if want := (100 + 20 + 30 + 6 + 7) * tick; err != nil || got != want {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if _, err := busyTime([]byte("intr 1")); err == nil {
		t.Error("no error for another line")
	}
}

func TestChildTicks(t *testing.T) {
	stat := "12 (a b) c) S 1 12 12 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 5 6 7"
	if got, err := childTicks([]byte(stat)); err != nil || got != 33+44 {
		t.Errorf("%d %v, want 77", got, err)
	}
	if _, err := childTicks([]byte("12 (a) S 1")); err == nil {
		t.Error("no error for a short line")
	}
}

func TestNumberedAs(t *testing.T) {
	const status = "Name:\tpause\nNSpid:\t4242\t77\t1\n"
	if got, ok := numberedAs(status, 77); !ok || got != 4242 {
		t.Errorf("%d %v, want 4242", got, ok)
	}
	if got, ok := numberedAs(status, 4242); ok {
		t.Errorf("the host's own number was found: %d", got)
	}
}

func TestSumOf(t *testing.T) {
	const text = `# TYPE prober_probe_total counter
prober_probe_total{container="a",pod="x{}"} 3
prober_probe_total{container="b"} 4e1
prober_probe_total_other{container="b"} 100
`
	if got, err := sumOf([]byte(text), "prober_probe_total"); err != nil || got != 43 {
		t.Errorf("%v %v, want 43", got, err)
	}
}

// TestOwnUsage reads the counters of this process.
func TestOwnUsage(t *testing.T) {
	pid := os.Getpid()
	before, err := ProcessCPU(pid)
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 5*time.Millisecond; {
	}
	after, err := ProcessCPU(pid)
	if err != nil || after <= before {
		t.Errorf("CPU time was %v, is %v: %v", before, after, err)
	}
	m, err := processMemory(pid)
	if err != nil || m.rss < 1<<20 || m.anon+m.file > m.rss {
		t.Errorf("memory %+v: %v", m, err)
	}
	if n, err := wakeups(pid); err != nil || n <= 0 {
		t.Errorf("wake-ups %d: %v", n, err)
	}
}
