// Package stats reads what containers and pods use.
package stats

import (
	"context"
	"sync"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/host"
	"swiftlet/cri-docker/internal/sandbox"
)

const (
	layerAge   = time.Minute // how old the usage of a writable layer may be: it is counted file by file
	concurrent = 8           // calls to Docker at the same time
)

// Stats reads usage when it is asked for.
type Stats struct {
	Engine     *engine.Engine
	Containers *container.Containers
	Sandboxes  *sandbox.Sandboxes

	mu     sync.Mutex
	layers map[string]*runtimeapi.FilesystemUsage // by container
}

// Container returns the usage of one container.
func (s *Stats) Container(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	c, l, err := s.Containers.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, c, &runtimeapi.ContainerAttributes{Id: c.ID, Metadata: l.Config.GetMetadata(),
		Labels: l.Config.GetLabels(), Annotations: l.Config.GetAnnotations()})
}

func (s *Stats) read(ctx context.Context, c dockercontainer.InspectResponse, a *runtimeapi.ContainerAttributes) (*runtimeapi.ContainerStats, error) {
	all := &runtimeapi.ContainerStats{Attributes: a}
	var err error
	if all.WritableLayer, err = s.layer(ctx, c); err != nil {
		return nil, err
	}
	if !c.State.Running {
		return all, nil
	}
	usage, err := s.Engine.Stats(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if at := usage.Read.UnixNano(); usage.Read.Year() > 1 { // it has not exited since
		all.Cpu, all.Memory, all.Swap = cpu(usage, at), memory(usage, at), swap(usage, at)
	}
	return all, nil
}

// ListContainers returns the usage of all running containers that match.
func (s *Stats) ListContainers(ctx context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	found, err := s.Containers.List(ctx, &runtimeapi.ContainerFilter{Id: f.GetId(), PodSandboxId: f.GetPodSandboxId(), LabelSelector: f.GetLabelSelector(),
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}})
	if err != nil {
		return nil, err
	}
	all := make([]*runtimeapi.ContainerStats, len(found))
	err = each(ctx, len(found), func(ctx context.Context, i int) error {
		var err error
		all[i], err = s.Container(ctx, found[i].GetId())
		return err
	})
	s.forgetLayers(found, f)
	return present(all), err
}

// each calls read for each index, several at a time. What has been removed meanwhile is no error.
func each(ctx context.Context, n int, read func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrent)
	for i := range n {
		group.Go(func() error {
			if err := read(ctx, i); err != nil && !engine.NotFound(err) {
				return err
			}
			return nil
		})
	}
	return group.Wait()
}

func present[T any](all []*T) []*T {
	var some []*T
	for _, one := range all {
		if one != nil {
			some = append(some, one)
		}
	}
	return some
}

// layer measures what a container has written to its root file system.
func (s *Stats) layer(ctx context.Context, c dockercontainer.InspectResponse) (*runtimeapi.FilesystemUsage, error) {
	if c.GraphDriver == nil || c.GraphDriver.Data["UpperDir"] == "" {
		return nil, nil // a storage driver without one
	}
	s.mu.Lock()
	known := s.layers[c.ID]
	s.mu.Unlock()
	if known != nil && time.Since(time.Unix(0, known.Timestamp)) < layerAge {
		return known, nil
	}
	dir := c.GraphDriver.Data["UpperDir"]
	disk, err := host.DiskUsage(ctx, dir)
	if err != nil {
		return nil, err
	}
	usage := &runtimeapi.FilesystemUsage{Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: dir},
		UsedBytes: value(disk.Bytes), InodesUsed: value(disk.Inodes)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layers == nil {
		s.layers = map[string]*runtimeapi.FilesystemUsage{}
	}
	s.layers[c.ID] = usage
	return usage, nil
}

// forgetLayers drops containers that are gone, after a list of all.
func (s *Stats) forgetLayers(found []*runtimeapi.Container, f *runtimeapi.ContainerStatsFilter) {
	if f.GetId() != "" || f.GetPodSandboxId() != "" || len(f.GetLabelSelector()) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[string]*runtimeapi.FilesystemUsage{}
	for _, c := range found {
		if usage := s.layers[c.GetId()]; usage != nil {
			kept[c.GetId()] = usage
		}
	}
	s.layers = kept
}
