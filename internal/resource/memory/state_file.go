package memory

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/statefile"
)

type (
	nodeMap     map[int]*NodeState
	assignments map[string]map[string][]Block
)

// stateContent is the state in the file.
type stateContent struct {
	PolicyName   string              `json:"policyName"`
	MachineState nodeMap             `json:"machineState"`
	Entries      assignments         `json:"entries,omitempty"`
	PodEntries   map[string]podEntry `json:"podEntries,omitempty"`
}

type podEntry struct {
	MemoryBlocks []Block `json:"memoryBlocks,omitempty"`
}

// legacyContent is the state in the format of releases before 1.37.
type legacyContent struct {
	PolicyName   string        `json:"policyName"`
	MachineState nodeMap       `json:"machineState"`
	Entries      assignments   `json:"entries,omitempty"`
	Checksum     statefile.Sum `json:"checksum"`
}

// stateFile is the file with both formats. Data is stateContent as a JSON string.
type stateFile struct {
	legacyContent
	Data         string        `json:"data"`
	DataChecksum statefile.Sum `json:"dataChecksum"`
}

func (o legacyContent) sum() statefile.Sum {
	o.Checksum = 0
	return statefile.Checksum(&o, "memory.legacyContent", "state.MemoryManagerCheckpoint", "memory.nodeMap", "state.NUMANodeMap",
		"memory.NodeState", "state.NUMANodeState", "memory.Table", "state.MemoryTable",
		"memory.assignments", "state.ContainerMemoryAssignments", "memory.Block", "state.Block")
}

// encode encodes the state in both formats.
func encode(s State) ([]byte, error) {
	c := stateContent{PolicyName: Static, MachineState: s.Nodes, Entries: assignments{}, PodEntries: map[string]podEntry{}}
	if c.MachineState == nil {
		c.MachineState = nodeMap{}
	}
	for uid, containers := range s.Containers {
		c.Entries[string(uid)] = containers
	}
	for uid, blocks := range s.Pods {
		c.PodEntries[string(uid)] = podEntry{blocks}
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode memory manager state: %w", err)
	}
	f := stateFile{legacyContent: legacyContent{PolicyName: c.PolicyName, MachineState: c.MachineState, Entries: c.Entries}, Data: string(data)}
	f.Checksum = f.sum()
	f.DataChecksum = statefile.Checksum(f.Data)
	return json.Marshal(f)
}

// decode decodes files of this package and of the reference kubelet of this or an older release.
// Every error wraps statefile.ErrBad.
func decode(raw []byte) (policy string, s State, err error) {
	f := stateFile{legacyContent: legacyContent{MachineState: nodeMap{}, Entries: assignments{}}}
	if err := json.Unmarshal(raw, &f); err != nil {
		return "", s, fmt.Errorf("%w: %w", statefile.ErrCorrupt, err)
	}
	c := stateContent{PolicyName: f.PolicyName, MachineState: f.MachineState, Entries: f.Entries}
	switch {
	case f.Data != "" || f.DataChecksum != 0:
		if sum := statefile.Checksum(f.Data); sum != f.DataChecksum {
			return "", s, fmt.Errorf("%w: its dataChecksum is %d, its data's is %d", statefile.ErrCorrupt, f.DataChecksum, sum)
		}
		c = stateContent{}
		if err := json.Unmarshal([]byte(f.Data), &c); err != nil {
			return "", s, fmt.Errorf("%w: data: %w", statefile.ErrCorrupt, err)
		}
	case f.Checksum != 0 && f.Checksum != f.sum():
		return "", s, fmt.Errorf("%w: its checksum is %d, its content's is %d", statefile.ErrCorrupt, f.Checksum, f.sum())
	}
	if c.PolicyName == "" {
		return "", s, fmt.Errorf("%w: it names no policy", statefile.ErrCorrupt)
	}
	s = State{Nodes: c.MachineState, Containers: map[types.UID]map[string][]Block{}, Pods: map[types.UID][]Block{}}
	for uid, containers := range c.Entries {
		s.Containers[types.UID(uid)] = containers
	}
	for uid, entry := range c.PodEntries {
		s.Pods[types.UID(uid)] = entry.MemoryBlocks
	}
	if err := s.check(); err != nil {
		return "", State{}, fmt.Errorf("%w: %w", statefile.ErrCorrupt, err)
	}
	return c.PolicyName, s, nil
}

// check returns an error if the state is inconsistent.
func (s State) check() error {
	for id, n := range s.Nodes {
		if n == nil {
			return fmt.Errorf("node %d has no state", id)
		}
		for kind, t := range n.MemoryMap {
			if t == nil {
				return fmt.Errorf("node %d has no %s", id, kind)
			}
		}
	}
	for uid, containers := range s.Containers {
		for name, blocks := range containers {
			if err := checkBlocks(blocks); err != nil {
				return fmt.Errorf("pod %s, container %s: %w", uid, name, err)
			}
		}
	}
	for uid, blocks := range s.Pods {
		if err := checkBlocks(blocks); err != nil {
			return fmt.Errorf("pod %s: %w", uid, err)
		}
		if len(s.Containers[uid]) == 0 {
			return fmt.Errorf("pod %s has memory, but none of its containers", uid)
		}
	}
	return nil
}

func checkBlocks(blocks []Block) error {
	for _, b := range blocks {
		if _, err := numa.NewNodes(b.NUMAAffinity...); err != nil || len(b.NUMAAffinity) == 0 {
			return errors.Join(errors.New("bad nodes"), err)
		}
	}
	return nil
}
