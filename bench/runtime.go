package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/bed"
)

// dialRuntime connects to the runtime of a node.
func dialRuntime(box *bed.Box) (*grpc.ClientConn, error) {
	connection, err := grpc.NewClient("unix://"+box.RuntimeSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to runtime: %w", err)
	}
	return connection, nil
}

// exits notes the exits of containers, which the runtime's event stream reports.
type exits struct {
	runtime runtimeapi.RuntimeServiceClient

	mu    sync.Mutex
	waits map[string]chan struct{}
}

// expect begins to wait for the exit of a container. The channel is closed at its exit.
func (e *exits) expect(id string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits[id] = make(chan struct{})
	return e.waits[id]
}

// Run reads the event stream until ctx is done.
func (e *exits) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		stream, err := e.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
		for err == nil {
			var event *runtimeapi.ContainerEventResponse
			if event, err = stream.Recv(); err == nil && event.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
				e.exited(event.ContainerId)
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

func (e *exits) exited(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if wait, ok := e.waits[id]; ok {
		close(wait)
		delete(e.waits, id)
	}
}

// containerPID returns the process of a container, as the host numbers it. The ID may have the
// runtime's prefix.
func containerPID(ctx context.Context, runtime runtimeapi.RuntimeServiceClient, id string) (int, error) {
	if _, plain, found := strings.Cut(id, "://"); found {
		id = plain
	}
	answer, err := runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return 0, fmt.Errorf("find process of container: %w", err)
	}
	var info struct {
		Pid int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(answer.Info["info"]), &info); err != nil {
		return 0, fmt.Errorf("find process of container: %w", err)
	}
	return hostPID(id, info.Pid)
}

// hostPID finds the process that has this number in its node's namespace and belongs to the container.
// Its cgroup has the container's ID.
func hostPID(container string, inner int) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), container) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err != nil {
			continue
		}
		if pid, ok := numberedAs(string(status), inner); ok {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("find process of container %s: none is number %d on its node", container, inner)
}

// numberedAs reads the NSpid line of /proc/PID/status: the process's number in each namespace, ours
// first. It returns ours if another namespace has it as inner.
func numberedAs(status string, inner int) (int, bool) {
	for line := range strings.Lines(status) {
		numbers, found := strings.CutPrefix(line, "NSpid:")
		if !found {
			continue
		}
		fields := strings.Fields(numbers)
		for _, field := range fields[min(1, len(fields)):] {
			if field == strconv.Itoa(inner) {
				ours, err := strconv.Atoi(fields[0])
				return ours, err == nil
			}
		}
	}
	return 0, false
}
