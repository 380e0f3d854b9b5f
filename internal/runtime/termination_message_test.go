package runtime

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swiftlet/internal/pod"
)

func TestTerminationMessage(t *testing.T) {
	const file, fallback = "File", "FallbackToLogsOnError"
	long := strings.Repeat("a", 10) + strings.Repeat("b", 4096)
	for name, c := range map[string]struct {
		policy string
		words  string // what stands in the termination log
		log    string // the end of the container's log, "" for none
		exit   int32
		reason string
		want   string
	}{
		"termination log":                             {policy: file, words: "bye\n", want: "bye\n"},
		"end of a long termination log":               {policy: file, words: long, want: long[10:]},
		"policy File does not fall back to the log":   {policy: file, log: "dying\n", exit: 7},
		"empty termination log falls back to the log": {policy: fallback, log: "dying\n", exit: 7, want: "dying\n"},
		"termination log wins over the log":           {policy: fallback, words: "bye", log: "dying\n", exit: 7, want: "bye"},
		"exit code 0 does not fall back":              {policy: fallback, log: "all well\n"},
		"ContainerCannotRun does not fall back":       {policy: fallback, log: "x", exit: 128, reason: "ContainerCannotRun"},
		"log that cannot be read":                     {policy: fallback, exit: 7, want: "Error on reading termination message from logs: no log"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ *Config, d *Deps) {
				d.LogTail = func(path string, lines, size int) ([]byte, error) {
					if path != "/logs/0.log" || lines != 80 || size != 2048 {
						t.Errorf("read %s, %d lines, %d bytes", path, lines, size)
					}
					if c.log == "" {
						return nil, errors.New("no log")
					}
					return []byte(c.log), nil
				}
			})
			path := filepath.Join(t.TempDir(), "words")
			if c.words != "" {
				writeFile(t, path, c.words)
			}
			got := b.TerminationMessage(&pod.Container{
				ExitCode: c.exit, Reason: c.reason, LogPath: "/logs/0.log",
				Mounts: []pod.Mount{{ContainerPath: "/etc/hosts", HostPath: "/etc/hosts"}, {ContainerPath: "/dev/termination-log", HostPath: path}},
				Annotations: map[string]string{
					"io.kubernetes.container.terminationMessagePath":   "dev/termination-log",
					"io.kubernetes.container.terminationMessagePolicy": c.policy,
				},
			})
			if got != c.want {
				t.Errorf("%.60q, want %.60q", got, c.want)
			}
		})
	}
}

// A volume that is mounted at the path of the termination log is beneath it: the container cannot write it there,
// and its file system may not answer.
func TestTerminationLogIsNotAFileOfAVolume(t *testing.T) {
	b, dir := newBench(t, nil), t.TempDir()
	ofVolume, own := filepath.Join(dir, "of-volume"), filepath.Join(dir, "own")
	writeFile(t, ofVolume, "of the volume")
	writeFile(t, own, "bye")
	got := b.TerminationMessage(&pod.Container{
		Mounts:      []pod.Mount{{ContainerPath: "/dev/termination-log", HostPath: ofVolume}, {ContainerPath: "/dev/termination-log", HostPath: own}},
		Annotations: map[string]string{"io.kubernetes.container.terminationMessagePath": "/dev/termination-log"},
	})
	if got != "bye" {
		t.Errorf("%q, want the container's own words", got)
	}
}

func TestTerminationLogIsNotTrusted(t *testing.T) {
	dir := t.TempDir()
	secret, link, fifo := filepath.Join(dir, "secret"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	writeFile(t, secret, "of the host")
	if err := errors.Join(syscall.Symlink(secret, link), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir} {
		if text, err := readTail(path, 100); err == nil {
			t.Errorf("%s was read: %q", path, text)
		}
	}
}
