package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/stats"
)

// volumesForStats are the volumes of a pod, as the stats measure them.
func (p *pods) volumesForStats(uid types.UID) []stats.Volume {
	var list []stats.Volume
	for _, v := range p.volumes.MeasurableVolumes(uid) {
		one := stats.Volume{Name: v.Name, Dir: v.HostPath, Local: v.Local, Claim: v.Claim, Driver: v.Driver}
		if v.Used != nil {
			one.QuotaUsage = func() (bytes, inodes uint64, ok bool) {
				used, ok := v.Used()
				return used.Bytes, used.Inodes, ok
			}
		}
		if v.Measure != nil {
			one.Measure = func(ctx context.Context) (stats.VolumeUsage, error) {
				u, err := v.Measure(ctx)
				return stats.VolumeUsage{
					CapacityBytes: u.CapacityBytes, AvailableBytes: u.AvailableBytes, UsedBytes: u.UsedBytes,
					Inodes: u.Inodes, InodesFree: u.InodesFree, InodesUsed: u.InodesUsed,
				}, err
			}
		}
		list = append(list, one)
	}
	return list
}
