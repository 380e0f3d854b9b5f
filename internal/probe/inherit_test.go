package probe

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/test/crashfs"
)

// runWithFile runs a Prober that keeps its results in file, calls f and stops the Prober.
func runWithFile(t *testing.T, file string, f func(*Prober, *script)) {
	t.Helper()
	s := &script{began: time.Now()}
	p, err := New(Config{File: file}, Deps{Checker: s, Events: &eventLog{}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 0.5 }, Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }()
	go drain(ctx, p)
	f(p, s)
	cancel()
	<-done
}

func shown(started, ready bool) *v1.PodStatus {
	return &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://id", Started: &started, Ready: ready}}}
}

// Without an API server, results are those that an earlier agent has saved. A startup probe that has passed
// does not run again.
func TestResultsSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), ResultsFile)
		of, seen := podWith(v1.Container{StartupProbe: command("s=+-", 1, 1), ReadinessProbe: command("r=+", 60, 1)})
		want := func(p *Prober, started, ready pod.Result) {
			t.Helper()
			if got := p.Health("id"); got.Startup != started || got.Readiness != ready {
				t.Errorf("startup %v, readiness %v, want %v and %v", got.Startup, got.Readiness, started, ready)
			}
		}
		runWithFile(t, file, func(p *Prober, _ *script) {
			p.Watch(of, seen, "", nil, false)
			advance(time.Second)
			want(p, pod.Passed, pod.Passed)
		})
		time.Sleep(time.Second)
		for range 2 { // the file is also kept by an agent that changes nothing
			runWithFile(t, file, func(p *Prober, s *script) {
				p.Watch(of, seen, "", nil, false)
				want(p, pod.Passed, pod.Passed)
				advance(time.Second)
				if ran := s.seen(); len(ran) > 0 {
					t.Errorf("probes ran: %v", ran)
				}
			})
		}
		runWithFile(t, file, func(p *Prober, _ *script) {
			p.Watch(of, seen, "", shown(true, false), false)
			want(p, pod.Passed, pod.Failed) // what is published is newer
		})
		for range 2 { // but a container that has started stays started, also in the file
			runWithFile(t, file, func(p *Prober, s *script) {
				p.Watch(of, seen, "", shown(false, false), false)
				want(p, pod.Passed, pod.Failed)
				advance(time.Second)
				if ran := s.seen(); slices.Contains(ran, "s@1s") || len(ran) > 1 {
					t.Errorf("probes ran: %v", ran)
				}
			})
		}
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		runWithFile(t, file, func(p *Prober, _ *script) {
			p.Watch(of, seen, "", nil, false)
			want(p, pod.ProbeUnknown, pod.Failed)
		})
	})
}

// Results of startup probes are in the file before the agent can be killed, and so are those that it has
// from the API server only.
func TestStartupIsSavedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		startup         string
		delay           int32
		published, late *v1.PodStatus
	}{
		"passed":         {startup: "s=+"},
		"published":      {startup: "s=-", published: shown(true, true)},
		"published_late": {startup: "s=-", delay: 1, late: shown(true, true)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), ResultsFile)
				other, otherSeen := podWith(v1.Container{ReadinessProbe: command("r=+", 3600, 1)})
				other.UID, otherSeen.Containers[0].ID = "other", "other"
				of, seen := podWith(v1.Container{StartupProbe: command(c.startup, 30, 1)})
				of.Spec.Containers[0].StartupProbe.InitialDelaySeconds = c.delay
				runWithFile(t, file, func(p *Prober, _ *script) {
					p.Watch(other, otherSeen, "", nil, false)
					advance(0) // the file is written, and the next write of a readiness probe waits
					p.Watch(of, seen, "", c.published, false)
					p.Watch(of, seen, "", c.late, false)
					advance(0)
					if got := readSaved(file, slog.New(slog.DiscardHandler)); !got["other"].Ready || !got["id"].Started {
						t.Errorf("saved %v", got)
					}
				})
			})
		})
	}
}

// The file has no containers that are gone.
func TestSavedResultsOfGoneContainersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), ResultsFile)
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=+", 1, 1)})
		runWithFile(t, file, func(p *Prober, _ *script) {
			p.Watch(of, seen, "", nil, false)
			advance(time.Second)
		})
		seen.Containers[0].ID = "next"
		runWithFile(t, file, func(p *Prober, _ *script) {
			p.Watch(of, seen, "", nil, false)
			advance(time.Second)
			if got := len(p.toSave()); got != 2 {
				t.Errorf("%d containers soon after the start, want 2", got)
			}
			advance(savedFor)
			if got := len(p.toSave()); got != 1 {
				t.Errorf("%d containers later, want 1", got)
			}
		})
	})
}

// The mirror of a static pod may become known after its probes were added.
func TestPublishedResultsAreInheritedLate(t *testing.T) {
	for name, c := range map[string]struct {
		wait           time.Duration
		failures       int32 // threshold of the startup probe
		published      *v1.PodStatus
		started, ready pod.Result
	}{
		"at_once":                {published: shown(true, true), started: pod.Passed, ready: pod.Passed},
		"before_the_first_run":   {wait: inheritWait + 14*time.Second, published: shown(true, true), started: pod.Passed, ready: pod.Passed},
		"not_ready":              {published: shown(true, false), started: pod.Passed, ready: pod.Failed},
		"not_started":            {published: shown(false, false), started: pod.ProbeUnknown, ready: pod.Failed},
		"after_a_failure":        {wait: inheritWait + 16*time.Second, failures: 2, published: shown(true, true), started: pod.Passed, ready: pod.Passed},
		"after_the_last_failure": {wait: inheritWait + 16*time.Second, published: shown(true, true), started: pod.Failed, ready: pod.Passed}, // readiness counts only if it has started
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of, seen := podWith(v1.Container{StartupProbe: command("s=-", 30, max(c.failures, 1)), ReadinessProbe: command("r=-", 30, 1)})
				time.Sleep(time.Second)
				runWithFile(t, "", func(p *Prober, _ *script) {
					p.Watch(of, seen, "", nil, false)
					advance(c.wait)
					p.Watch(of, seen, "", c.published, false)
					if got := p.Health("id"); got.Startup != c.started || got.Readiness != c.ready {
						t.Errorf("startup %v, readiness %v, want %v and %v", got.Startup, got.Readiness, c.started, c.ready)
					}
				})
			})
		})
	}
}

// A startup probe that waits for the published status runs as usual when that says that it has not passed.
func TestHeldStartupProbeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of, seen := podWith(v1.Container{StartupProbe: command("s=+", 4, 1)})
		time.Sleep(time.Second)
		runWithFile(t, "", func(p *Prober, s *script) {
			p.Watch(of, seen, "", nil, false)
			advance(time.Second)
			p.Watch(of, seen, "", shown(false, false), false)
			advance(time.Second)
			if got := s.seen(); !slices.Equal(got, []string{"s@2s"}) {
				t.Errorf("runs: %v, want one half a period after the start", got)
			}
		})
	})
}

// Results that could not be saved are saved when the disk works again, without another change.
func TestResultsAreSavedAfterADiskError(t *testing.T) {
	disk := crashfs.Mount(t)
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(disk.Dir, ResultsFile)
		disk.Fail(func(int, crashfs.Op) syscall.Errno { return syscall.ENOSPC })
		of, seen := podWith(v1.Container{ReadinessProbe: command("r=+", 3600, 1)})
		runWithFile(t, file, func(p *Prober, _ *script) {
			p.Watch(of, seen, "", nil, false)
			advance(10 * time.Second)
			disk.Fail(nil)
			advance(time.Minute)
			if got := readSaved(file, slog.New(slog.DiscardHandler)); !got["id"].Ready {
				t.Errorf("saved %v", got)
			}
		})
	})
}
