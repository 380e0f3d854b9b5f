package quota

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestFileSystemWithoutQuotas: it is logged once, and no file is created or changed.
func TestFileSystemWithoutQuotas(t *testing.T) {
	pods, etc := t.TempDir(), t.TempDir()
	must(t, unix.Mount("tmpfs", pods, "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(pods, 0)) })
	var log strings.Builder
	p, err := New(Config{PodsDir: pods, ListsDir: etc}, clock.RealClock{}, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	p.ReleaseStale()
	for _, name := range []string{"one", "two"} {
		dir := filepath.Join(pods, name)
		must(t, os.Mkdir(dir, 0o755))
		for range 2 {
			p.Track(dir, filepath.Join(etc, "marker"))
		}
		if used, ok := p.Used(dir); ok {
			t.Errorf("counted %+v", used)
		}
	}
	p.ReleaseStale()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO") || !strings.Contains(got, "project quota: not supported by file system") {
		t.Errorf("log: %s", got)
	}
	if entries, err := os.ReadDir(etc); err != nil || len(entries) > 0 {
		t.Errorf("made %v, %v", entries, err)
	}
}

func TestReleaseStaleKeepsOtherLines(t *testing.T) {
	for _, c := range []struct{ name, projects, names, wantProjects, wantNames string }{
		{"empty lists", "", "", "", ""},
		{"removed directory", "1048577:PODS/gone\n", "volume1048577:1048577\n", "", ""},
		{"existing directory", "1048577:PODS/here\n", "volume1048577:1048577\n", "1048577:PODS/here\n", "volume1048577:1048577\n"},
		{"ID shared with existing directory", "1048577:PODS/gone\n1048577:PODS/here\n", "volume1048577:1048577\n", "1048577:PODS/here\n", "volume1048577:1048577\n"},
		{"lines of other programs", "7:/srv/gone\n# PODS/gone\n\nPODS/gone\n", "web:7\nvolume3:3\nvolume1048577:9\n", "7:/srv/gone\n# PODS/gone\n\nPODS/gone\n", "web:7\nvolume3:3\nvolume1048577:9\n"},
		{"other name for the ID", "1048577:PODS/gone\n", "mine:1048577\n", "", "mine:1048577\n"},
		{"name without directory", "", "volume1048577:1048577\n", "", ""},
		{"no trailing newline", "1048577:PODS/gone\n7:/srv", "web:7", "7:/srv\n", "web:7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pods, etc := t.TempDir(), t.TempDir()
			must(t, os.Mkdir(filepath.Join(pods, "here"), 0o755))
			file := func(name string) string { return filepath.Join(etc, name) }
			must(t, os.WriteFile(file(projectsFile), []byte(strings.ReplaceAll(c.projects, "PODS", pods)), 0o644))
			must(t, os.WriteFile(file(namesFile), []byte(c.names), 0o644))
			p, err := New(Config{PodsDir: pods, ListsDir: etc}, clock.RealClock{}, slog.New(slog.DiscardHandler))
			must(t, err)
			must(t, p.releaseStale())
			for name, want := range map[string]string{projectsFile: c.wantProjects, namesFile: c.wantNames} {
				got, err := os.ReadFile(file(name))
				must(t, err)
				if got := strings.ReplaceAll(string(got), pods, "PODS"); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if entries, err := os.ReadDir(etc); err != nil || len(entries) != 2 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
}

// TestSymbolicLinkAsListIsRejected: it would be replaced with a file, or lead to another file.
func TestSymbolicLinkAsListIsRejected(t *testing.T) {
	etc := t.TempDir()
	must(t, os.Symlink("/dev/null", filepath.Join(etc, projectsFile)))
	if l, err := openLists(etc, clock.RealClock{}); err == nil {
		l.close()
		t.Error("it was opened")
	}
}

// TestLockedListIsNotAwaitedForever: every process that can read a list can lock it, also a pod that sees /etc.
func TestLockedListIsNotAwaitedForever(t *testing.T) {
	for _, name := range []string{projectsFile, namesFile} {
		pods, etc := t.TempDir(), t.TempDir()
		must(t, os.WriteFile(filepath.Join(etc, namesFile), []byte("volume1048577:1048577\n"), 0o644))
		must(t, os.WriteFile(filepath.Join(etc, projectsFile), nil, 0o644))
		f, err := os.Open(filepath.Join(etc, name))
		must(t, err)
		must(t, unix.Flock(int(f.Fd()), unix.LOCK_SH))
		p, err := New(Config{PodsDir: pods, ListsDir: etc}, clocktesting.NewFakeClock(time.Unix(0, 0)), slog.New(slog.DiscardHandler))
		must(t, err)
		if err := p.releaseStale(); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("%s is locked: %v", name, err)
		}
		must(t, f.Close())
		must(t, p.releaseStale())
		if text, err := os.ReadFile(filepath.Join(etc, namesFile)); err != nil || len(text) > 0 {
			t.Errorf("names after %s was unlocked: %q, %v", name, text, err)
		}
	}
}

// TestListReplacedWhileWaiting: a lock on a file that was replaced meanwhile is not used.
func TestListReplacedWhileWaiting(t *testing.T) {
	etc := t.TempDir()
	first, err := openLists(etc, clock.RealClock{})
	must(t, err)
	second := make(chan *lists)
	go func() {
		l, err := openLists(etc, clock.RealClock{})
		if err != nil {
			t.Error(err)
		}
		second <- l
	}()
	first.add(firstID, "/one")
	must(t, first.save())
	first.close()
	got := <-second
	defer got.close()
	if id, ok := got.idOf("/one"); !ok || id != firstID {
		t.Errorf("the second sees %d, %v", id, ok)
	}
}
