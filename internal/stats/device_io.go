package stats

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"swiftlet/internal/cgroup"
)

// deviceIO is the I/O of a cgroup and its descendants on one block device.
type deviceIO struct {
	number deviceNumber
	// bytes and requests are counts by operation. Operations of cgroup v2 are Read and Write; v1
	// also has Sync, Async, Discard and Total.
	bytes, requests []operationCount
	// cost are microseconds by counter of cgroup v2's cost model, empty unless that is on.
	cost []operationCount
}

// deviceNumber is the number of a block device: major and minor.
type deviceNumber [2]uint64

// parseDevice parses major:minor.
func parseDevice(text []byte) (deviceNumber, bool) {
	first, second, _ := bytes.Cut(text, []byte{':'})
	major, okMajor := parseUint(first)
	minor, okMinor := parseUint(second)
	return deviceNumber{major, minor}, okMajor && okMinor
}

type operationCount struct {
	operation string
	count     uint64
}

// ioDevices collects the devices of a cgroup in the order of the kernel's files.
type ioDevices []deviceIO

// at returns the entry of a device; nil if name is not the number of one.
func (d *ioDevices) at(name []byte) *deviceIO {
	number, ok := parseDevice(name)
	if !ok {
		return nil
	}
	for i := range *d {
		if e := &(*d)[i]; e.number == number {
			return e
		}
	}
	*d = append(*d, deviceIO{number: number})
	return &(*d)[len(*d)-1]
}

// readDeviceIOv1 reads the counters of the throttling policy, which exist with every I/O scheduler.
func readDeviceIOv1(s *fileReader, h cgroup.Hierarchy, path string) []deviceIO {
	if h.Mounts["blkio"] == "" {
		return nil
	}
	dir := h.Dir("blkio", path)
	var devices ioDevices
	for file, counts := range map[string]func(*deviceIO) *[]operationCount{
		"/blkio.throttle.io_service_bytes_recursive": func(d *deviceIO) *[]operationCount { return &d.bytes },
		"/blkio.throttle.io_serviced_recursive":      func(d *deviceIO) *[]operationCount { return &d.requests },
	} {
		if text, err := s.read(dir + file); err == nil {
			devices.parseV1(text, counts)
		}
	}
	return devices
}

// parseV1 parses lines such as "8:0 Read 4096". The last line, the total of all devices, has no device.
func (d *ioDevices) parseV1(text []byte, counts func(*deviceIO) *[]operationCount) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 3 {
			continue
		}
		device := d.at(fields[0])
		n, ok := parseUint(fields[2])
		if device == nil || !ok {
			continue
		}
		list := counts(device)
		*list = append(*list, operationCount{string(fields[1]), n})
	}
}

// readDeviceIOv2 reads io.stat.
func readDeviceIOv2(s *fileReader, dir string) []deviceIO {
	text, err := s.read(dir + "/io.stat")
	if err != nil {
		return nil // the controller is off
	}
	var devices ioDevices
	devices.parseV2(text)
	return devices
}

// parseV2 parses lines such as "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0". A line without
// counters is of a device that has not been used.
func (d *ioDevices) parseV2(text []byte) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		device := d.at(fields[0])
		if device == nil {
			continue
		}
		for _, field := range fields[1:] {
			key, value, _ := bytes.Cut(field, []byte{'='})
			n, ok := parseUint(value)
			if !ok {
				continue
			}
			switch string(key) {
			case "rbytes":
				device.bytes = append(device.bytes, operationCount{"Read", n})
			case "wbytes":
				device.bytes = append(device.bytes, operationCount{"Write", n})
			case "rios":
				device.requests = append(device.requests, operationCount{"Read", n})
			case "wios":
				device.requests = append(device.requests, operationCount{"Write", n})
			case "cost.usage", "cost.wait", "cost.indebt", "cost.indelay":
				device.cost = append(device.cost, operationCount{string(key), n})
			}
		}
	}
}

// countOf returns the count of an operation.
func countOf(counts []operationCount, operation string) uint64 {
	for _, c := range counts {
		if c.operation == operation {
			return c.count
		}
	}
	return 0
}

// deviceNames maps block devices to the names that the metrics have: /dev/NAME for a disk, the mounted
// device for a partition, and none for others such as loop devices that nothing has mounted.
type deviceNames map[deviceNumber]string

func (n deviceNames) of(d *deviceIO) string { return n[d.number] }

// readDeviceNames reads the names of all disks and of the devices of file systems. blockDir is
// /sys/block, except in tests.
func readDeviceNames(blockDir string, mounted []fileSystem) deviceNames {
	names := deviceNames{}
	for _, f := range mounted {
		names[deviceNumber{uint64(f.major), uint64(f.minor)}] = f.device
	}
	entries, err := os.ReadDir(blockDir)
	if err != nil {
		return names // a host without block devices
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, "loop") || strings.HasPrefix(name, "ram") || strings.HasPrefix(name, "sr") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(blockDir, name, "dev"))
		if err != nil {
			continue
		}
		if number, ok := parseDevice(bytes.TrimSpace(text)); ok {
			names[number] = "/dev/" + name
		}
	}
	return names
}
