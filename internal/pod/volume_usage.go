package pod

import "context"

// VolumeUsage is how full a volume is, as its driver reports it. A negative number is unknown.
type VolumeUsage struct {
	CapacityBytes, AvailableBytes, UsedBytes int64
	Inodes, InodesFree, InodesUsed           int64
}

// MeasurableVolume is a mounted volume whose usage is part of the pod's stats.
type MeasurableVolume struct {
	Name string
	// Dir is where it is on the host.
	Dir string
	// Local volumes use the node's ephemeral storage.
	Local bool
	// Claim is the name of the PersistentVolumeClaim, "" for none.
	Claim string
	// Driver is the name of the CSI driver, "" for none.
	Driver string
	// QuotaUsage returns the usage by the project quota of the volume, false if it has none now;
	// nil for a volume that never has one.
	QuotaUsage func() (bytes, inodes uint64, ok bool)
	// Measure asks the driver for the usage; nil for a volume without a driver.
	Measure func(context.Context) (VolumeUsage, error)
}
