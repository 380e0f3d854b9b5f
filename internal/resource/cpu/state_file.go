package cpu

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/statefile"
	"swiftlet/internal/resource/topology"
)

// stateContent is the state in the file.
type stateContent struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	PodEntries    map[string]podEntry          `json:"podEntries,omitempty"`
}

type podEntry struct {
	CPUSet string `json:"cpuSet,omitempty"`
}

// legacyContent is the state in the format of releases before 1.37.
type legacyContent struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	Checksum      statefile.Sum                `json:"checksum"`
}

// stateFile is the file with both formats. Data is stateContent as a JSON string.
type stateFile struct {
	legacyContent
	Data         string        `json:"data"`
	DataChecksum statefile.Sum `json:"dataChecksum"`
}

func (o legacyContent) sum() statefile.Sum {
	o.Checksum = 0
	return statefile.Checksum(&o, "cpu.legacyContent", "state.CPUManagerCheckpoint")
}

// encode encodes the state in both formats.
func encode(policy string, s State) ([]byte, error) {
	c := stateContent{PolicyName: policy, DefaultCPUSet: s.Shared.String(), Entries: map[string]map[string]string{}, PodEntries: map[string]podEntry{}}
	for uid, containers := range s.Containers {
		entry := map[string]string{}
		for name, cpus := range containers {
			entry[name] = cpus.String()
		}
		c.Entries[string(uid)] = entry
	}
	for uid, cpus := range s.Pods {
		c.PodEntries[string(uid)] = podEntry{cpus.String()}
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode CPU manager state: %w", err)
	}
	f := stateFile{legacyContent: legacyContent{PolicyName: policy, DefaultCPUSet: c.DefaultCPUSet, Entries: c.Entries}, Data: string(data)}
	f.Checksum = f.sum()
	f.DataChecksum = statefile.Checksum(f.Data)
	return json.Marshal(f)
}

// decode decodes files of this package and of the reference kubelet of this or an older release.
// Every error wraps statefile.ErrBad.
func decode(raw []byte) (policy string, s State, err error) {
	f := stateFile{legacyContent: legacyContent{Entries: map[string]map[string]string{}}}
	if err := json.Unmarshal(raw, &f); err != nil {
		return "", s, fmt.Errorf("%w: %w", statefile.ErrCorrupt, err)
	}
	var c stateContent
	switch {
	case f.Data != "" || f.DataChecksum != 0:
		if sum := statefile.Checksum(f.Data); sum != f.DataChecksum {
			return "", s, fmt.Errorf("%w: its dataChecksum is %d, its data's is %d", statefile.ErrCorrupt, f.DataChecksum, sum)
		}
		if err := json.Unmarshal([]byte(f.Data), &c); err != nil {
			return "", s, fmt.Errorf("%w: data: %w", statefile.ErrCorrupt, err)
		}
	default:
		if sum := f.sum(); f.Checksum != 0 && f.Checksum != sum { // the oldest releases wrote none
			return "", s, fmt.Errorf("%w: its checksum is %d, its content's is %d", statefile.ErrCorrupt, f.Checksum, sum)
		}
		c = stateContent{PolicyName: f.PolicyName, DefaultCPUSet: f.DefaultCPUSet, Entries: f.Entries}
	}
	if c.PolicyName == "" {
		return "", s, fmt.Errorf("%w: it names no policy", statefile.ErrCorrupt)
	}
	if s, err = c.state(); err != nil {
		return "", State{}, fmt.Errorf("%w: %w", statefile.ErrCorrupt, err)
	}
	return c.PolicyName, s, nil
}

func (c stateContent) state() (State, error) {
	shared, err := topology.ParseList(c.DefaultCPUSet)
	if err != nil {
		return State{}, fmt.Errorf("defaultCpuSet: %w", err)
	}
	s := State{Shared: shared, Containers: map[types.UID]map[string]cpuset.CPUSet{}, Pods: map[types.UID]cpuset.CPUSet{}}
	for _, uid := range slices.Sorted(maps.Keys(c.Entries)) {
		containers := map[string]cpuset.CPUSet{}
		for name, list := range c.Entries[uid] {
			if containers[name], err = topology.ParseList(list); err != nil {
				return State{}, fmt.Errorf("entries: pod %s, container %s: %w", uid, name, err)
			}
		}
		s.Containers[types.UID(uid)] = containers
	}
	for uid, entry := range c.PodEntries {
		if s.Pods[types.UID(uid)], err = topology.ParseList(entry.CPUSet); err != nil {
			return State{}, fmt.Errorf("podEntries: pod %s: %w", uid, err)
		}
	}
	return s, s.check()
}
