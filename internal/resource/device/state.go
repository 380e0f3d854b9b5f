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

// file is the checkpoint's name in the folder.
const file = "kubelet_internal_checkpoint"

func (m *Manager) path() string { return filepath.Join(m.cfg.Dir, file) }

// restore takes note of what an earlier agent gave out. A file that makes no sense is put
// aside: the node must come up, and the file may tell somebody what went wrong.
func (m *Manager) restore() error {
	entries, registered, err := checkpoint.Read(m.path())
	switch {
	case errors.Is(err, checkpoint.ErrMissing):
		return nil
	case errors.Is(err, checkpoint.ErrTorn), errors.Is(err, checkpoint.ErrChecksum):
		aside := m.path() + ".bad"
		m.deps.Log.Error("it is not known which devices running pods have; the file is put aside", "err", err, "file", aside)
		if err := os.Rename(m.path(), aside); err != nil {
			return fmt.Errorf("put a bad checkpoint of devices aside: %w", err)
		}
		return nil
	case err != nil:
		return err
	}
	now := m.deps.Clock.Now()
	for resource := range registered {
		m.resources[resource] = &stock{left: now}
	}
	for _, e := range entries {
		answer := &pluginapi.ContainerAllocateResponse{}
		if err := proto.Unmarshal(e.AllocResp, answer); err != nil {
			m.deps.Log.Error("what a container has of a resource cannot be read", "err", err,
				"pod", e.PodUID, "container", e.ContainerName, "resource", e.ResourceName, "file", m.path())
			continue
		}
		g := &grant{nodes: map[string][]int64{}, answer: answer}
		for node, ids := range e.DeviceIDs {
			for _, id := range ids {
				g.nodes[id] = slices.Clone(g.nodes[id])
				if node != checkpoint.WithoutNUMA {
					g.nodes[id] = append(g.nodes[id], node)
				}
			}
		}
		m.grants[place{types.UID(e.PodUID), e.ContainerName, e.ResourceName}] = g
	}
	return nil
}

// save writes down what was given out, and which devices there are.
func (m *Manager) save() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	m.mu.Lock()
	registered := m.registered()
	entries, err := m.entries()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if err := checkpoint.Write(m.path(), entries, registered); err != nil {
		return err
	}
	m.saved = registered
	return nil
}

// saveDevices is save where only the list of devices may have changed; plugins repeat
// themselves.
func (m *Manager) saveDevices() error {
	m.mu.Lock()
	registered := m.registered()
	m.mu.Unlock()
	m.saving.Lock()
	same := reflect.DeepEqual(registered, m.saved)
	m.saving.Unlock()
	if same {
		return nil
	}
	return m.save()
}

// registered are the healthy devices of each resource. Called under the lock.
func (m *Manager) registered() map[string][]string {
	all := map[string][]string{}
	for resource, s := range m.resources {
		all[resource] = slices.Sorted(maps.Keys(s.healthy()))
		if all[resource] == nil {
			all[resource] = []string{}
		}
	}
	return all
}

// entries are the grants that plugins have confirmed. Called under the lock.
func (m *Manager) entries() ([]checkpoint.PodDevicesEntry, error) {
	var all []checkpoint.PodDevicesEntry
	for at, g := range m.grants {
		if g.answer == nil {
			continue
		}
		answer, err := proto.Marshal(g.answer)
		if err != nil {
			return nil, fmt.Errorf("encode the allocation of %s to container %s of pod %s: %w", at.resource, at.container, at.pod, err)
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
			PodUID: string(at.pod), ContainerName: at.container, ResourceName: at.resource, DeviceIDs: ids, AllocResp: answer,
		})
	}
	slices.SortFunc(all, func(a, b checkpoint.PodDevicesEntry) int {
		return cmp.Or(cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.ContainerName, b.ContainerName), cmp.Compare(a.ResourceName, b.ResourceName))
	})
	return all, nil
}
