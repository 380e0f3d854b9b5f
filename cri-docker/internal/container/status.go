package container

import (
	"strings"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/image"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/labels"
)

// Describe derives the status of a container from what Docker and the labels say. The image may be gone.
func Describe(c dockercontainer.InspectResponse, l labels.Container, img *image.InspectResponse) *runtimeapi.ContainerStatus {
	s := &runtimeapi.ContainerStatus{
		Id: c.ID, Metadata: l.Config.GetMetadata(), CreatedAt: l.CreatedAt,
		Image: l.Config.GetImage(), ImageRef: c.Image, ImageId: c.Image,
		Labels: l.Config.GetLabels(), Annotations: l.Config.GetAnnotations(), Mounts: l.Config.GetMounts(),
		LogPath:   l.LogPath,
		Resources: statusResources(c.HostConfig, l.Config.GetLinux().GetResources()),
	}
	if img != nil && len(img.RepoDigests) > 0 {
		s.ImageRef = img.RepoDigests[0]
	}
	s.StopSignal = signal(c.Config)
	describeState(s, c.State)
	return s
}

func describeState(s *runtimeapi.ContainerStatus, state *dockercontainer.State) {
	if state == nil {
		s.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN
		return
	}
	s.State = State(state.Status)
	switch {
	case s.State == runtimeapi.ContainerState_CONTAINER_CREATED && state.Error != "":
		// Docker keeps a container that it could not start in this state.
		s.State, s.Reason, s.Message, s.ExitCode = runtimeapi.ContainerState_CONTAINER_EXITED, "StartError", state.Error, int32(state.ExitCode)
		s.StartedAt, s.FinishedAt = s.CreatedAt, max(nanoseconds(state.FinishedAt), s.CreatedAt)
	case s.State == runtimeapi.ContainerState_CONTAINER_RUNNING:
		s.StartedAt = nanoseconds(state.StartedAt)
	case s.State == runtimeapi.ContainerState_CONTAINER_EXITED:
		s.StartedAt, s.FinishedAt = nanoseconds(state.StartedAt), nanoseconds(state.FinishedAt)
		s.FinishedAt = max(s.FinishedAt, s.StartedAt) // Docker takes the time of a start after the fact
		s.ExitCode, s.Message = int32(state.ExitCode), state.Error
		s.Reason = exitReason(state)
	}
}

func exitReason(state *dockercontainer.State) string {
	switch {
	case state.OOMKilled:
		return "OOMKilled"
	case state.ExitCode == 0:
		return "Completed"
	}
	return "Error"
}

// State translates Docker's states.
func State(state dockercontainer.ContainerState) runtimeapi.ContainerState {
	switch state {
	case dockercontainer.StateCreated:
		return runtimeapi.ContainerState_CONTAINER_CREATED
	case dockercontainer.StateRunning, dockercontainer.StatePaused, dockercontainer.StateRestarting:
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	case dockercontainer.StateExited, dockercontainer.StateDead, dockercontainer.StateRemoving:
		return runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

// signal is the one that stops a container.
func signal(c *dockercontainer.Config) runtimeapi.Signal {
	if c == nil || c.StopSignal == "" {
		return runtimeapi.Signal_SIGNAL_SIGTERM
	}
	name := "SIGNAL_SIG" + strings.TrimPrefix(strings.ToUpper(c.StopSignal), "SIG")
	return runtimeapi.Signal(runtimeapi.Signal_value[name]) // a number or an unknown one: runtime default
}

// nanoseconds reads a time of Docker, which writes the year 1 for none.
func nanoseconds(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() <= 1 {
		return 0
	}
	return at.UnixNano()
}
