package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/bed"
)

const (
	allLogLines = 400_000
	logLineSize = 1000 // with the newline
)

// logOptions rotate often and keep every file, so that lines can be counted.
var logOptions = bed.KubeletOptions{Config: "containerLogMaxSize: 10Mi\ncontainerLogMaxFiles: 500\ncontainerLogMonitorInterval: 3s\n"}

// logRotation runs a container that writes a known number of lines as fast as the runtime takes them,
// and counts those that are in its log files afterwards.
func logRotation(ctx context.Context, t *trial) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	k, logLines := t.kubelet(), t.number(allLogLines)
	if err := k.restart(ctx, logOptions); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, k.restart(context.WithoutCancel(ctx), bed.KubeletOptions{}))
	}()
	p := newPod("writer")
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Containers = []corev1.Container{shellContainer("c", fmt.Sprintf("yes %s | head -n %d", strings.Repeat("x", logLineSize-1), logLines))}
	ended := k.pods.expect(p.Name, func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodSucceeded })
	used, err := t.cluster.cpuOf(t.subject, func() error {
		if err := k.create(ctx, p); err != nil {
			return err
		}
		if _, err := ended.at(ctx); err != nil {
			return err
		}
		return sleep(ctx, 4*time.Second) // rotations and compression that are due
	})
	if err != nil {
		return err
	}
	status := k.pods.get(p.Name)
	took, err := k.runTime(ctx, status.Status.ContainerStatuses[0].ContainerID)
	if err != nil {
		return err
	}
	dir := k.box.Path(fmt.Sprintf("/var/log/pods/%s_%s_%s/c", namespace, p.Name, status.UID))
	found, err := countLines(dir)
	if err != nil {
		return err
	}
	size := float64(logLines) * logLineSize
	t.record("log_rate", size/1e6/took.Seconds())
	t.record("log_lost", float64(logLines-found))
	t.record("log_agent_cpu", used.agent.Seconds()/(size/1e9))
	_, err = k.delete(ctx, []*corev1.Pod{p})
	return err
}

// runTime is how long an exited container ran.
func (k *kubelet) runTime(ctx context.Context, id string) (time.Duration, error) {
	_, id, _ = strings.Cut(id, "://")
	answer, err := k.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return 0, fmt.Errorf("read run time of container: %w", err)
	}
	return time.Duration(answer.Status.FinishedAt - answer.Status.StartedAt), nil
}

// countLines counts the lines of all log files of a container, also compressed ones.
func countLines(dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "0.log*"))
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".tmp") {
			continue
		}
		if _, err := os.Stat(file + ".gz"); err == nil {
			continue // compressed, and not yet removed
		}
		n, err := linesOf(file)
		if err != nil {
			return 0, fmt.Errorf("count lines of %s: %w", file, err)
		}
		sum += n
	}
	return sum, nil
}

func linesOf(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var text io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			return 0, err
		}
	}
	n := 0
	lines := bufio.NewReaderSize(text, 1<<20)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if isWhole(line) {
			n++
		}
	}
}

// isWhole is true of the last or only part of a line. The runtime may split a line; each part has a tag
// after the time and the stream.
func isWhole(line []byte) bool {
	fields := bytes.SplitN(line, []byte(" "), 4)
	return len(fields) == 4 && string(fields[2]) == "F"
}
