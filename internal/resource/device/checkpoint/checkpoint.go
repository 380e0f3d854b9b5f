// Package checkpoint reads and writes the checkpoint of device allocations in the reference
// kubelet's format, so that each kubelet reads the other's.
//
// The reference kubelet's checksum covers the content in Go syntax, which contains the names of
// this package, its types and their fields: they cannot be changed.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"

	"k8s.io/utils/dump"

	"swiftlet/internal/checkpoint"
)

// WithoutNUMA is the key of devices that belong to no NUMA node.
const WithoutNUMA = -1

// DevicesPerNUMA are device ids by NUMA node. A device of several nodes is listed under each.
type DevicesPerNUMA map[int64][]string

// PodDevicesEntry is one container's allocation of one resource.
type PodDevicesEntry struct {
	PodUID        string
	ContainerName string
	ResourceName  string
	DeviceIDs     DevicesPerNUMA
	// AllocResp is the plugin's ContainerAllocateResponse as protobuf.
	AllocResp []byte
}

type checkpointData struct {
	PodDeviceEntries []PodDevicesEntry
	// RegisteredDevices are the healthy devices of each resource.
	RegisteredDevices map[string][]string
}

// file is the whole content.
type file struct {
	Data     checkpointData
	Checksum uint64
}

// Errors that Read wraps, besides those of reading a file.
var (
	ErrMissing  = errors.New("device checkpoint does not exist")
	ErrInvalid  = errors.New("device checkpoint is not valid JSON")
	ErrChecksum = errors.New("device checkpoint does not match its checksum")
)

// Read returns the allocations, and the devices of each registered resource.
func Read(path string) ([]PodDevicesEntry, map[string][]string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read %s: %w", path, ErrMissing)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read device checkpoint: %w", err)
	}
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w: %v", path, ErrInvalid, err)
	}
	if want := sum(f.Data); f.Checksum != want {
		return nil, nil, fmt.Errorf("read %s: %w: checksum %d, want %d", path, ErrChecksum, f.Checksum, want)
	}
	return f.Data.PodDeviceEntries, f.Data.RegisteredDevices, nil
}

// Write replaces the file durably: after it returned, the file survives a crash of the machine.
func Write(path string, entries []PodDevicesEntry, registered map[string][]string) error {
	data := checkpointData{PodDeviceEntries: entries, RegisteredDevices: registered}
	content, err := json.Marshal(file{Data: data, Checksum: sum(data)})
	if err != nil {
		return fmt.Errorf("encode device checkpoint: %w", err)
	}
	if err := checkpoint.Replace(path, content, 0o600); err != nil {
		return fmt.Errorf("write device checkpoint: %w", err)
	}
	return nil
}

func sum(data checkpointData) uint64 {
	h := fnv.New32a()
	h.Write([]byte(dump.ForHash(data)))
	return uint64(h.Sum32())
}
