package stats

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// disks is the usage of file systems for one summary.
type disks struct {
	node       fsInfo
	images     *statsapi.FsStats
	containers *statsapi.FsStats
	layers     map[string]*runtimeapi.FilesystemUsage // writable layers, by container id
	byMount    map[string]*fsInfo                     // by mount point; nil if statfs failed
}

// readDisks reads the usage of the node's file system and of the runtime's, without layers.
func (s *Stats) readDisks(ctx context.Context) (*disks, error) {
	d := &disks{layers: map[string]*runtimeapi.FilesystemUsage{}, byMount: map[string]*fsInfo{}}
	var err error
	if d.node, err = statfs(s.cfg.RootDir); err != nil {
		return nil, err
	}
	info, err := s.deps.Runtime.ImageFsInfo(ctx)
	if err != nil {
		return nil, err
	}
	if len(info.ImageFilesystems) == 0 {
		return nil, errors.New("read image file system: the runtime reports none")
	}
	d.images = d.usageOf(info.ImageFilesystems[0])
	d.containers = d.images
	if len(info.ContainerFilesystems) > 0 {
		d.containers = d.usageOf(info.ContainerFilesystems[0])
	}
	return d, nil
}

// addLayers adds the writable layers of containers.
func (d *disks) addLayers(containers []*runtimeapi.ContainerStats) {
	for _, c := range containers {
		if c.WritableLayer != nil {
			d.layers[c.GetAttributes().GetId()] = c.WritableLayer
		}
	}
}

// usageOf combines the usage that the runtime reports with the capacity of the file system, if
// that is visible on this node.
func (d *disks) usageOf(u *runtimeapi.FilesystemUsage) *statsapi.FsStats {
	out := &statsapi.FsStats{}
	if mount := u.GetFsId().GetMountpoint(); mount != "" {
		fs, known := d.byMount[mount]
		if !known {
			if info, err := statfs(mount); err == nil {
				fs = &info
			}
			d.byMount[mount] = fs
		}
		if fs != nil {
			out = fs.stats(time.Time{})
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

// stats is the file system without a usage.
func (fs fsInfo) stats(at time.Time) *statsapi.FsStats {
	return &statsapi.FsStats{
		Time:           metav1.NewTime(at),
		AvailableBytes: &fs.available,
		CapacityBytes:  &fs.capacity,
		Inodes:         &fs.inodes,
		InodesFree:     &fs.inodesFree,
	}
}

// withUsage is the file system with the given usage.
func (fs fsInfo) withUsage(at time.Time, used diskUsage) *statsapi.FsStats {
	out := fs.stats(at)
	out.UsedBytes, out.InodesUsed = &used.bytes, &used.inodes
	return out
}

// addPodStorage adds the usage of the pod's containers, logs and volumes. The sum of what is
// local to the node is its ephemeral storage.
func (s *Stats) addPodStorage(out *statsapi.PodStats, p *podUsage, d *disks) {
	now := s.deps.Clock.Now()
	logs := filepath.Join(s.cfg.PodLogsDir, p.LogDirName())
	var sum diskUsage
	count := func(t diskUsage, err error) diskUsage {
		if err != nil {
			s.deps.Log.Debug("stats: read storage usage of pod failed", p.Ref.Attr(), "err", err)
		}
		sum.add(t)
		return t
	}
	for i := range p.containers {
		c, into := &p.containers[i], &out.Containers[i]
		into.Logs = d.node.withUsage(now, count(dirFilesUsage(filepath.Join(logs, c.name))))
		into.Rootfs = &statsapi.FsStats{}
		if layer := d.layers[c.id]; layer != nil {
			into.Rootfs = d.usageOf(layer)
			count(diskUsage{layer.GetUsedBytes().GetValue(), layer.GetInodesUsed().GetValue()}, nil)
		}
	}
	for _, v := range s.deps.Volumes(p.UID) {
		stats, used, err := s.volumeStats(p.Namespace, v)
		if err != nil {
			s.deps.Log.Debug("stats: measure volume failed", p.Ref.Attr(), "volume", v.Name, "err", err)
			continue
		}
		out.VolumeStats = append(out.VolumeStats, stats)
		if v.Local {
			sum.add(used)
		}
	}
	count(dirFilesUsage(logs))
	count(fileUsage(filepath.Join(s.cfg.RootDir, "pods", string(p.UID), "etc-hosts")))
	out.EphemeralStorage = d.node.withUsage(now, sum)
}
