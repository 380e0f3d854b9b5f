package runtime

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Limits of a container's termination message.
const (
	maxMessage      = 4096
	maxMessageLog   = 2048
	maxMessageLines = 80
)

// TerminationMessage returns the termination message of an exited container: its termination log
// or, with policy FallbackToLogsOnError and an empty termination log, the end of its log.
func (r *Runtime) TerminationMessage(c *pod.Container) string {
	text, err := readTerminationLog(c)
	if err != nil {
		return err.Error()
	}
	// A container that could not run has no log.
	fallback := c.Annotations[annotationTerminationPolicy] == string(v1.TerminationMessageFallbackToLogsOnError) &&
		c.ExitCode != 0 && c.Reason != "ContainerCannotRun"
	if text != "" || !fallback {
		return text
	}
	tail, err := r.deps.LogTail(c.LogPath, maxMessageLines, maxMessageLog)
	if err != nil {
		return fmt.Sprintf("Error on reading termination message from logs: %v", err)
	}
	return string(tail)
}

// readTerminationLog reads the end of the termination log.
func readTerminationLog(c *pod.Container) (string, error) {
	inside := c.Annotations[annotationTerminationPath]
	if inside == "" {
		return "", nil
	}
	// The kubelet's mount is the last at that path. A volume that is mounted there is beneath it, and may hang.
	for _, m := range slices.Backward(c.Mounts) {
		if m.ContainerPath != absolute(inside) {
			continue
		}
		text, err := readTail(m.HostPath, maxMessage)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			message := fmt.Sprintf("Error on reading termination log %s: %v", m.HostPath, err)
			return "", &shownError{message: message, err: err}
		}
		return string(text), nil
	}
	return "", nil
}

// readTail reads at most the last size bytes of a regular file. Containers write it, so readTail
// does not follow a symlink and does not block on a FIFO.
func readTail(path string, size int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return io.ReadAll(io.NewSectionReader(f, max(info.Size()-size, 0), size))
}
