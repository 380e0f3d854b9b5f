package image

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Disk is a file system's size, and the bytes available on it.
type Disk struct{ Capacity, Available uint64 }

// used returns the usage in percent. Blocks reserved for root count as used.
func (d Disk) used() int { return 100 - int(d.Available*100/d.Capacity) }

// excess returns the bytes by which the usage exceeds the percentage.
func (d Disk) excess(percent int) int64 {
	return int64(d.Capacity/100*uint64(100-percent)) - int64(d.Available)
}

func readDisk(dir string) (Disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Disk{}, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return Disk{Capacity: st.Blocks * uint64(st.Bsize), Available: st.Bavail * uint64(st.Bsize)}, nil
}

var errNoCapacity = errors.New("invalid capacity 0 on image filesystem")

// disk measures the image file system.
func (c *Collector) disk(ctx context.Context) (Disk, error) {
	info, err := c.deps.Images.ImageFsInfo(ctx)
	if err != nil {
		return Disk{}, err
	}
	dir := ""
	if all := info.GetImageFilesystems(); len(all) > 0 {
		dir = all[0].GetFsId().GetMountpoint()
	}
	if dir == "" {
		return Disk{}, errors.New("find image filesystem: runtime reports none")
	}
	c.mu.Lock()
	c.dir = dir
	c.mu.Unlock()
	return c.measure(dir)
}

func (c *Collector) measure(dir string) (Disk, error) {
	d, err := c.deps.Disk(dir)
	if err != nil {
		return d, fmt.Errorf("measure the image file system: %w", err)
	}
	if d.Capacity == 0 {
		return d, errNoCapacity
	}
	d.Available = min(d.Available, d.Capacity)
	return d, nil
}

// formatSize formats a number of bytes as the reference kubelet does.
func formatSize(bytes uint64) string {
	const step = 1024
	if bytes < step {
		return fmt.Sprintf("%d B", bytes)
	}
	amount, unit := float64(bytes)/step, 0
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	for amount >= step && unit < len(units)-1 {
		amount, unit = amount/step, unit+1
	}
	return fmt.Sprintf("%.1f %s", amount, units[unit])
}
