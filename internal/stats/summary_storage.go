package stats

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// disks is what is known of file systems while one summary is made.
type disks struct {
	node       space
	images     *statsapi.FsStats
	containers *statsapi.FsStats
	layers     map[string]*runtimeapi.FilesystemUsage // writable layers, by container id
	spaces     map[string]*space                      // by mount point; nil where it is not known here
}

// readDisks measures the node's file system and asks the runtime for its own.
func (s *Stats) readDisks(ctx context.Context) (*disks, error) {
	d := &disks{layers: map[string]*runtimeapi.FilesystemUsage{}, spaces: map[string]*space{}}
	var err error
	if d.node, err = spaceOf(s.cfg.RootDir); err != nil {
		return nil, err
	}
	info, err := s.deps.Runtime.ImageFsInfo(ctx)
	if err != nil {
		return nil, err
	}
	if len(info.ImageFilesystems) == 0 {
		return nil, fmt.Errorf("read statistics: the runtime tells of no file system for images")
	}
	d.images = d.usageOf(info.ImageFilesystems[0])
	d.containers = d.images
	if len(info.ContainerFilesystems) > 0 {
		d.containers = d.usageOf(info.ContainerFilesystems[0])
	}
	all, err := s.deps.Runtime.ListContainerStats(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.WritableLayer != nil {
			d.layers[c.GetAttributes().GetId()] = c.WritableLayer
		}
	}
	return d, nil
}

// usageOf completes the runtime's word with the size of the file system it is about, where
// that can be found on this node.
func (d *disks) usageOf(u *runtimeapi.FilesystemUsage) *statsapi.FsStats {
	out := &statsapi.FsStats{}
	if mount := u.GetFsId().GetMountpoint(); mount != "" {
		on, known := d.spaces[mount]
		if !known {
			if found, err := spaceOf(mount); err == nil {
				on = &found
			}
			d.spaces[mount] = on
		}
		if on != nil {
			out = on.stats(time.Time{})
		}
	}
	out.Time = metav1.NewTime(time.Unix(0, u.GetTimestamp()))
	if u.GetUsedBytes() != nil {
		out.UsedBytes = &u.UsedBytes.Value
	}
	if u.GetInodesUsed() != nil {
		out.InodesUsed = &u.InodesUsed.Value
	}
	return out
}

// stats is the file system without anybody's part in it.
func (on space) stats(at time.Time) *statsapi.FsStats {
	return &statsapi.FsStats{
		Time:           metav1.NewTime(at),
		AvailableBytes: &on.available,
		CapacityBytes:  &on.capacity,
		Inodes:         &on.inodes,
		InodesFree:     &on.inodesFree,
	}
}

// with is the file system with what somebody takes of it.
func (on space) with(at time.Time, part taken) *statsapi.FsStats {
	out := on.stats(at)
	out.UsedBytes, out.InodesUsed = &part.bytes, &part.inodes
	return out
}

// addPodStorage adds what the pod's containers, logs and volumes take; the sum of what goes
// with the pod is its ephemeral storage.
func (s *Stats) addPodStorage(out *statsapi.PodStats, p *podUsage, d *disks) {
	now := s.deps.Clock.Now()
	logs := filepath.Join(s.cfg.PodLogsDir, p.LogDirName())
	var sum taken
	count := func(t taken, err error) taken {
		if err != nil {
			s.deps.Log.Debug("storage of a pod is not known", "pod", p.Ref, "err", err)
		}
		sum.add(t)
		return t
	}
	for i := range p.containers {
		c, into := &p.containers[i], &out.Containers[i]
		into.Logs = d.node.with(now, count(takenByFiles(filepath.Join(logs, c.name))))
		into.Rootfs = &statsapi.FsStats{}
		if layer := d.layers[c.id]; layer != nil {
			into.Rootfs = d.usageOf(layer)
			count(taken{layer.GetUsedBytes().GetValue(), layer.GetInodesUsed().GetValue()}, nil)
		}
	}
	for _, v := range s.deps.Volumes(p.UID) {
		stats, part, err := s.volumeStats(p.Namespace, v)
		if err != nil {
			s.deps.Log.Debug("usage of a volume is not known", "pod", p.Ref, "volume", v.Name, "err", err)
			continue
		}
		out.VolumeStats = append(out.VolumeStats, stats)
		if v.Local {
			sum.add(part)
		}
	}
	count(takenByFiles(logs))
	count(takenBy(filepath.Join(s.cfg.RootDir, "pods", string(p.UID), "etc-hosts")))
	out.EphemeralStorage = d.node.with(now, sum)
}
