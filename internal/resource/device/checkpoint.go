package device

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"swiftlet/internal/resource/device/checkpoint"
)

// checkpointName is the checkpoint's file name.
const checkpointName = "kubelet_internal_checkpoint"

func (m *Manager) checkpointPath() string { return filepath.Join(m.cfg.Dir, checkpointName) }

// CheckCheckpoint returns an error if the checkpoint exists and cannot be used. It changes nothing.
func CheckCheckpoint(path string) error {
	_, _, err := checkpoint.Read(path)
	if errors.Is(err, checkpoint.ErrMissing) {
		return nil
	}
	return err
}

// restore reads the checkpoint. It moves a corrupt one aside: the node must start, and the file
// remains for diagnosis.
func (m *Manager) restore() error {
	entries, registered, err := checkpoint.Read(m.checkpointPath())
	switch {
	case errors.Is(err, checkpoint.ErrMissing):
		return nil
	case errors.Is(err, checkpoint.ErrInvalid), errors.Is(err, checkpoint.ErrChecksum):
		aside := m.checkpointPath() + ".bad"
		m.deps.Log.Error("device manager: checkpoint is corrupt, moving it aside", "err", err, "path", aside)
		if err := os.Rename(m.checkpointPath(), aside); err != nil {
			return fmt.Errorf("move corrupt device checkpoint aside: %w", err)
		}
		return nil
	case err != nil:
		return err
	}
	now := m.deps.Clock.Now()
	for resource := range registered {
		m.resources[resource] = &resourceState{lostAt: now}
	}
	for _, e := range entries {
		response := &pluginapi.ContainerAllocateResponse{}
		if err := proto.Unmarshal(e.AllocResp, response); err != nil {
			m.deps.Log.Error("device manager: cannot decode allocation in checkpoint", "err", err,
				"podUID", e.PodUID, "container", e.ContainerName, "resource", e.ResourceName, "path", m.checkpointPath())
			continue
		}
		g := &allocation{nodes: map[string][]int64{}, response: response, unverified: true}
		for node, ids := range e.DeviceIDs {
			for _, id := range ids {
				g.nodes[id] = slices.Clone(g.nodes[id])
				if node != checkpoint.WithoutNUMA {
					g.nodes[id] = append(g.nodes[id], node)
				}
			}
		}
		m.allocations[allocationKey{types.UID(e.PodUID), e.ContainerName, e.ResourceName}] = g
	}
	return nil
}

// save writes the allocations and the devices to the checkpoint.
func (m *Manager) save() error {
	m.saveMu.Lock()
	defer m.saveMu.Unlock()
	m.mu.Lock()
	registered := m.registeredLocked()
	entries, err := m.entriesLocked()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if err := checkpoint.Write(m.checkpointPath(), entries, registered); err != nil {
		return err
	}
	m.savedDevices = registered
	return nil
}

// saveDevices saves if the devices have changed: plugins send equal lists repeatedly.
func (m *Manager) saveDevices() error {
	m.mu.Lock()
	registered := m.registeredLocked()
	m.mu.Unlock()
	m.saveMu.Lock()
	same := reflect.DeepEqual(registered, m.savedDevices)
	m.saveMu.Unlock()
	if same {
		return nil
	}
	return m.save()
}

// registeredLocked returns the healthy devices of each resource.
func (m *Manager) registeredLocked() map[string][]string {
	all := map[string][]string{}
	for resource, s := range m.resources {
		all[resource] = slices.Sorted(maps.Keys(s.healthy()))
		if all[resource] == nil {
			all[resource] = []string{}
		}
	}
	return all
}

// entriesLocked returns the allocations that plugins have confirmed.
func (m *Manager) entriesLocked() ([]checkpoint.PodDevicesEntry, error) {
	var all []checkpoint.PodDevicesEntry
	for key, g := range m.allocations {
		if g.response == nil {
			continue
		}
		response, err := proto.Marshal(g.response)
		if err != nil {
			return nil, fmt.Errorf("encode allocation of %s to container %s of pod %s: %w", key.resource, key.container, key.pod, err)
		}
		ids := checkpoint.DevicesPerNUMA{}
		for _, id := range g.ids() {
			nodes := g.nodes[id]
			if len(nodes) == 0 {
				nodes = []int64{checkpoint.WithoutNUMA}
			}
			for _, node := range nodes {
				ids[node] = append(ids[node], id)
			}
		}
		all = append(all, checkpoint.PodDevicesEntry{
			PodUID: string(key.pod), ContainerName: key.container, ResourceName: key.resource, DeviceIDs: ids, AllocResp: response,
		})
	}
	slices.SortFunc(all, func(a, b checkpoint.PodDevicesEntry) int {
		return cmp.Or(cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.ContainerName, b.ContainerName), cmp.Compare(a.ResourceName, b.ResourceName))
	})
	return all, nil
}
