package crifaults

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/criproxy"
)

// lying changes responses with the function.
func lying(change func(response proto.Message)) Fault {
	return Fault{Answer: func(_ context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
		message, err := criproxy.DecodeAnswer(c, response)
		if err != nil {
			return nil, err
		}
		change(message)
		if response, err = proto.Marshal(message); err != nil {
			return nil, err
		}
		return [][]byte{response}, nil
	}}
}

// Duplicating lists everything twice.
func Duplicating() Fault {
	return lying(func(response proto.Message) {
		switch r := response.(type) {
		case *runtimeapi.ListPodSandboxResponse:
			r.Items = append(r.Items, r.Items...)
		case *runtimeapi.ListContainersResponse:
			r.Containers = append(r.Containers, r.Containers...)
		case *runtimeapi.ListImagesResponse:
			r.Images = append(r.Images, r.Images...)
		case *runtimeapi.ContainerEventResponse:
			r.ContainersStatuses = append(r.ContainersStatuses, r.ContainersStatuses...)
		}
	})
}

// OmittingFields lists entries that have nothing but an ID or nothing at all, and omits from statuses what
// is not needed to identify the container.
func OmittingFields() Fault {
	return lying(func(response proto.Message) {
		switch r := response.(type) {
		case *runtimeapi.ListPodSandboxResponse:
			r.Items = append(r.Items, &runtimeapi.PodSandbox{}, &runtimeapi.PodSandbox{Id: "unknown", Metadata: &runtimeapi.PodSandboxMetadata{}})
		case *runtimeapi.ListContainersResponse:
			r.Containers = append(r.Containers, &runtimeapi.Container{}, &runtimeapi.Container{Id: "unknown", PodSandboxId: "unknown"})
		case *runtimeapi.ContainerStatusResponse:
			omit(r.Status)
			r.Info = nil
		case *runtimeapi.PodSandboxStatusResponse:
			r.Info = nil
			for _, c := range r.ContainersStatuses {
				omit(c)
			}
		case *runtimeapi.ContainerEventResponse:
			for _, c := range r.ContainersStatuses {
				omit(c)
			}
		case *runtimeapi.ImageStatusResponse:
			r.Info = nil
			if r.Image != nil {
				r.Image.Spec, r.Image.Uid, r.Image.RepoDigests = nil, nil, nil
			}
		case *runtimeapi.VersionResponse:
			r.RuntimeVersion, r.RuntimeName = "", ""
		}
	})
}

func omit(c *runtimeapi.ContainerStatus) {
	if c != nil {
		c.Image, c.ImageRef, c.ImageId, c.LogPath, c.Message, c.Mounts, c.Resources = nil, "", "", "", "", nil, nil
	}
}

// ShiftingTimes moves all times of containers and sandboxes by d.
func ShiftingTimes(d time.Duration) Fault {
	shift := func(times ...*int64) {
		for _, t := range times {
			if *t != 0 {
				*t += d.Nanoseconds()
			}
		}
	}
	return lying(func(response proto.Message) {
		eachTime(response, shift)
	})
}

// ExtremeTimes sets all times of containers and sandboxes to the largest number.
func ExtremeTimes() Fault {
	return lying(func(response proto.Message) {
		eachTime(response, func(times ...*int64) {
			for _, t := range times {
				if *t != 0 {
					*t = math.MaxInt64
				}
			}
		})
	})
}

func eachTime(response proto.Message, change func(times ...*int64)) {
	status := func(c *runtimeapi.ContainerStatus) {
		if c != nil {
			change(&c.CreatedAt, &c.StartedAt, &c.FinishedAt)
		}
	}
	sandbox := func(s *runtimeapi.PodSandboxStatus) {
		if s != nil {
			change(&s.CreatedAt)
		}
	}
	switch r := response.(type) {
	case *runtimeapi.ListPodSandboxResponse:
		for _, s := range r.Items {
			change(&s.CreatedAt)
		}
	case *runtimeapi.ListContainersResponse:
		for _, c := range r.Containers {
			change(&c.CreatedAt)
		}
	case *runtimeapi.ContainerStatusResponse:
		status(r.Status)
	case *runtimeapi.PodSandboxStatusResponse:
		sandbox(r.Status)
		change(&r.Timestamp)
		for _, c := range r.ContainersStatuses {
			status(c)
		}
	case *runtimeapi.ContainerEventResponse:
		change(&r.CreatedAt)
		sandbox(r.PodSandboxStatus)
		for _, c := range r.ContainersStatuses {
			status(c)
		}
	}
}

// GrowingLists adds entries of this size to lists: containers of no pod, with long annotations.
func GrowingLists(bytes int) Fault {
	const each = 100_000
	annotations := map[string]string{"long": strings.Repeat("x", each)}
	return lying(func(response proto.Message) {
		for n := range bytes / each {
			id := fmt.Sprintf("grown-%d", n)
			switch r := response.(type) {
			case *runtimeapi.ListPodSandboxResponse:
				r.Items = append(r.Items, &runtimeapi.PodSandbox{Id: id, Annotations: annotations})
			case *runtimeapi.ListContainersResponse:
				r.Containers = append(r.Containers, &runtimeapi.Container{Id: id, Annotations: annotations})
			case *runtimeapi.ListImagesResponse:
				r.Images = append(r.Images, &runtimeapi.Image{Id: id, Username: annotations["long"]})
			}
		}
	})
}

// SpoilingEvents sends events that name nothing, or have an unknown type, before each event.
func SpoilingEvents() Fault {
	return Fault{Answer: func(_ context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
		if c.Method() != events {
			return [][]byte{response}, nil
		}
		var spoiled [][]byte
		for _, event := range []*runtimeapi.ContainerEventResponse{
			{},
			{ContainerId: "unknown", ContainerEventType: 99},
			{ContainerId: "unknown", PodSandboxStatus: &runtimeapi.PodSandboxStatus{Id: "unknown"}},
			{PodSandboxStatus: &runtimeapi.PodSandboxStatus{Metadata: &runtimeapi.PodSandboxMetadata{Uid: "../..", Name: "x"}},
				ContainersStatuses: []*runtimeapi.ContainerStatus{{}, {State: 99}}},
		} {
			text, err := proto.Marshal(event)
			if err != nil {
				return nil, err
			}
			spoiled = append(spoiled, text)
		}
		return append(spoiled, response), nil
	}}
}
