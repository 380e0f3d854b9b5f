package bed

import (
	"errors"
	"fmt"
	"os"

	"swiftlet/test/bed/crirecord"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	recordedSocket   = "/etc/containerd/recorded.sock" // in a directory that the host can reach
)

// recording writes the calls of one kubelet to a file.
type recording struct {
	recorder *crirecord.Recorder
	file     *os.File
}

// record stops the current recording and, with a path, records the calls of the next kubelet.
func (b *Box) record(path string) error {
	if err := b.calls.close(); err != nil {
		return err
	}
	b.calls = nil
	if path == "" {
		return nil
	}
	var err error
	b.calls, err = b.startRecording(path)
	return err
}

// startRecording starts a recorder between kubelet and containerd.
func (b *Box) startRecording(path string) (*recording, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("record calls: %w", err)
	}
	// The host reaches the box's own /run through /proc/PID/root.
	runtime := fmt.Sprintf("/proc/%d/root%s", b.init.cmd.Process.Pid, containerdSocket)
	recorder, err := crirecord.Start(b.Path(recordedSocket), runtime, file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("record calls: %w", err), file.Close())
	}
	return &recording{recorder, file}, nil
}

func (r *recording) close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.recorder.Close(), r.file.Close())
}
