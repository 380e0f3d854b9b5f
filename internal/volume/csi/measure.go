package csi

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// ErrNotMeasured means that the driver does not report the usage of its volumes.
var ErrNotMeasured = errors.New("the CSI driver does not report volume stats")

// Measure calls the driver for the usage of the volume.
func (p *Plugin) Measure(ctx context.Context, r plugin.Request, at plugin.Result) (pod.VolumeUsage, error) {
	from := sourceOf(r)
	usage := pod.VolumeUsage{CapacityBytes: -1, AvailableBytes: -1, UsedBytes: -1, Inodes: -1, InodesFree: -1, InodesUsed: -1}
	c, err := p.connect(from.driver)
	if err != nil {
		return usage, err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	caps, err := c.capabilities(ctx)
	if err != nil {
		return usage, err
	}
	if !caps[canMeasure] {
		return usage, ErrNotMeasured
	}
	path := at.HostPath
	if r.Block() {
		path = p.MapDir(r.PV.Name) + "/" + string(r.Pod.UID)
	}
	got, err := c.node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: from.handle, VolumePath: path})
	if err != nil {
		return usage, err
	}
	if got.GetUsage() == nil {
		return usage, fmt.Errorf("failed to get usage from response. usage is nil")
	}
	for _, u := range got.GetUsage() {
		switch u.GetUnit() {
		case csi.VolumeUsage_BYTES:
			usage.CapacityBytes, usage.AvailableBytes, usage.UsedBytes = u.GetTotal(), u.GetAvailable(), u.GetUsed()
		case csi.VolumeUsage_INODES:
			usage.Inodes, usage.InodesFree, usage.InodesUsed = u.GetTotal(), u.GetAvailable(), u.GetUsed()
		}
	}
	return usage, nil
}
