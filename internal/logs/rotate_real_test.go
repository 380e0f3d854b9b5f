package logs

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/test/poll"
	"swiftlet/test/realcri"
)

// A container writes many times MaxSize through a real containerd, at about 20 MB/s so that a
// stall of this machine is not a full disk: the disk usage never exceeds a small multiple of
// MaxSize, although Interval is an hour.
func TestFastGrowingLog(t *testing.T) {
	runtime := realcri.Start(t)
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const written, maxSize, maxFiles = 100 << 20, 1 << 20, 3
	pod := runtime.Pod("flood", "uid")
	sandbox, err := client.RunPodSandbox(t.Context(), pod, "")
	if err != nil {
		t.Fatal(err)
	}
	container := runtime.Container(pod, "c", `line=$(head -c 3000 /dev/zero | tr '\0' x)
		i=0; while [ $i -lt 50 ]; do yes "$line" | head -c 2097152; sleep 0.05; i=$((i+1)); done`)
	id, err := client.CreateContainer(t.Context(), sandbox, container, pod)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(pod.LogDirectory, "c")
	rotations := 0
	r, err := NewRotator(RotateConfig{MaxSize: maxSize, MaxFiles: maxFiles, Workers: 1, Interval: time.Hour}, RotateDeps{
		Containers: slices.Values([]Container{{id, filepath.Join(dir, "0.log")}}),
		Reopen: func(ctx context.Context, id string) error {
			rotations++
			return client.ReopenContainerLog(ctx, id)
		},
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	began := time.Now()
	if err := client.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var maxSeen int64
	poll.Until(t, "the container to end", func() bool {
		maxSeen = max(maxSeen, sizeBelow(dir))
		status, err := client.ContainerStatus(t.Context(), id, false)
		return err == nil && status.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	took := time.Since(began)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	t.Logf("%d MB/s for %v, %d rotations, never more than %d MB on the disk", int64(written>>20)*1000/took.Milliseconds(), took, rotations, maxSeen>>20)
	if maxSeen > written/2 {
		t.Errorf("%d MB on the disk, of %d MB written and %d MB allowed", maxSeen>>20, written>>20, maxFiles*maxSize>>20)
	}
}

func sizeBelow(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was just removed
		}
		if info, err := os.Lstat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
