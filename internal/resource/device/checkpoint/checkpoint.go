// Package checkpoint is the file in which device allocations outlive the agent, in the
// reference kubelet's form, so that either reads what the other has written.
//
// That kubelet's checksum is taken over the Go syntax of the content, in which the names of
// this package and its types appear: they cannot be changed.
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

// WithoutNUMA is the node under which devices stand that belong to none.
const WithoutNUMA = -1

// DevicesPerNUMA are device ids by NUMA node. A device of several nodes is under each.
type DevicesPerNUMA map[int64][]string

// PodDevicesEntry is what one container was given of one resource.
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

// Errors that Read's match with errors.Is, beside those of reading a file.
var (
	ErrMissing  = errors.New("no checkpoint of devices")
	ErrTorn     = errors.New("checkpoint of devices is torn or foreign")
	ErrChecksum = errors.New("checkpoint of devices does not match its checksum")
)

// Read returns what was given to containers, and the devices of each known resource.
func Read(path string) ([]PodDevicesEntry, map[string][]string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read %s: %w", path, ErrMissing)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read checkpoint of devices: %w", err)
	}
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w: %v", path, ErrTorn, err)
	}
	if want := sum(f.Data); f.Checksum != want {
		return nil, nil, fmt.Errorf("read %s: %w: it says %d, the content has %d", path, ErrChecksum, f.Checksum, want)
	}
	return f.Data.PodDeviceEntries, f.Data.RegisteredDevices, nil
}

// Write replaces the file; it survives a crash of the machine when Write has returned.
func Write(path string, entries []PodDevicesEntry, registered map[string][]string) error {
	data := checkpointData{PodDeviceEntries: entries, RegisteredDevices: registered}
	content, err := json.Marshal(file{Data: data, Checksum: sum(data)})
	if err != nil {
		return fmt.Errorf("encode checkpoint of devices: %w", err)
	}
	if err := checkpoint.Replace(path, content, 0o600); err != nil {
		return fmt.Errorf("write checkpoint of devices: %w", err)
	}
	return nil
}

func sum(data checkpointData) uint64 {
	h := fnv.New32a()
	h.Write([]byte(dump.ForHash(data)))
	return uint64(h.Sum32())
}
