package stats

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// Storage returns the usage of the node's disk by the given pods, and no other stats of them.
// It measures volumes whose last result is older than fresh again, as Summary does.
func (s *Stats) Storage(ctx context.Context, pods []types.UID, fresh time.Duration) ([]statsapi.PodStats, error) {
	requested := map[types.UID]bool{}
	for _, uid := range pods {
		requested[uid] = true
	}
	d := &disks{layers: map[string]*runtimeapi.FilesystemUsage{}, byMount: map[string]*fsInfo{}}
	var err error
	if d.node, err = statfs(s.cfg.RootDir); err != nil {
		return nil, err
	}
	observed := slices.DeleteFunc(slices.Clone(s.deps.Pods()), func(o pod.Observed) bool { return !requested[o.UID] || o.Sandbox() == nil })
	var volumes []pod.MeasurableVolume
	for _, o := range observed {
		for _, v := range s.deps.Volumes(o.UID) {
			if v.Measure == nil { // a driver's volume is not on the node's disk
				volumes = append(volumes, v)
			}
		}
	}
	s.measureVolumes(ctx, volumes, fresh)
	var all []statsapi.PodStats
	for _, o := range observed {
		if err := s.readLayers(ctx, d, o.Sandbox().ID); err != nil {
			return nil, err
		}
		p := podUsage{Ref: o.Ref}
		out := statsapi.PodStats{PodRef: statsapi.PodReference{Name: o.Name, Namespace: o.Namespace, UID: string(o.UID)}}
		for i := range o.Containers {
			if c := &o.Containers[i]; c.State == pod.Running {
				p.containers = append(p.containers, containerUsage{id: c.ID, name: c.Name})
				out.Containers = append(out.Containers, statsapi.ContainerStats{Name: c.Name})
			}
		}
		s.addPodStorage(&out, &p, d)
		all = append(all, out)
	}
	return all, nil
}

// readLayers reads the usage of the writable layers of one sandbox.
func (s *Stats) readLayers(ctx context.Context, d *disks, sandbox string) error {
	list, err := s.deps.Runtime.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: sandbox})
	if err != nil {
		return fmt.Errorf("list container stats of sandbox %s: %w", sandbox, err)
	}
	d.addLayers(list)
	return nil
}
