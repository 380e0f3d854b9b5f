package dra

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"swiftlet/internal/checkpoint"
)

// The following types are the format of the checkpoint, which is the reference kubelet's.
type checkpointFile struct {
	Data     string // JSON of checkpointData
	Checksum uint32
}

type checkpointData struct {
	metav1.TypeMeta
	ClaimInfoStateList []claimState
}

type claimState struct {
	ClaimUID  types.UID
	ClaimName string
	Namespace string
	// PodUIDs are the pods that use the claim.
	PodUIDs     sets.Set[string]
	DriverState map[string]driverState
}

type driverState struct {
	Devices            []device
	SkipNodeOperations []resourceapi.SkipNodeOperation `json:"skipNodeOperations,omitempty"`
}

// skips reports whether the driver needs no call for the operation.
func (s driverState) skips(operation resourceapi.SkipNodeOperation) bool {
	return slices.Contains(s.SkipNodeOperations, resourceapi.SkipNodeOperationAll) || slices.Contains(s.SkipNodeOperations, operation)
}

type device struct {
	PoolName     string
	DeviceName   string
	ShareID      *types.UID
	RequestNames []string
	CDIDeviceIDs []string
}

var checkpointType = metav1.TypeMeta{Kind: "DRACheckpoint", APIVersion: "checkpoint.dra.kubelet.k8s.io/v1"}

func (m *Manager) checkpointPath() string { return filepath.Join(m.cfg.RootDir, "dra_manager_state") }

// restore reads the checkpoint. It moves a corrupt one aside: the node must start, and drivers
// prepare the claims of starting pods again.
func (m *Manager) restore() error {
	states, err := readCheckpoint(m.checkpointPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ErrCorrupt):
		aside := m.checkpointPath() + ".bad"
		m.deps.Log.Error("dra: checkpoint is corrupt, moving it aside", "err", err, "path", aside)
		if err := os.Rename(m.checkpointPath(), aside); err != nil {
			return fmt.Errorf("move corrupt DRA checkpoint aside: %w", err)
		}
		return nil
	case err != nil:
		return err
	}
	for _, s := range states {
		if s.PodUIDs == nil {
			s.PodUIDs = sets.New[string]()
		}
		m.claims[key{s.Namespace, s.ClaimName}] = &claim{claimState: s}
	}
	return nil
}

// CheckCheckpoint returns an error if the checkpoint exists and cannot be used. It changes nothing.
func CheckCheckpoint(path string) error {
	_, err := readCheckpoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ErrCorrupt is the error of a truncated, modified or foreign checkpoint.
var ErrCorrupt = errors.New("checkpoint is corrupt")

func readCheckpoint(path string) ([]claimState, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read DRA checkpoint: %w", err)
	}
	var file checkpointFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("decode %s: %w: %v", path, ErrCorrupt, err)
	}
	if sum := crc32.ChecksumIEEE([]byte(file.Data)); sum != file.Checksum {
		return nil, fmt.Errorf("decode %s: %w: checksum %d, want %d", path, ErrCorrupt, file.Checksum, sum)
	}
	var data checkpointData
	if err := json.Unmarshal([]byte(file.Data), &data); err != nil {
		return nil, fmt.Errorf("decode %s: %w: %v", path, ErrCorrupt, err)
	}
	return data.ClaimInfoStateList, nil
}

// save writes all claims to the checkpoint.
func (m *Manager) save() error {
	m.saveMu.Lock()
	defer m.saveMu.Unlock()
	m.mu.Lock()
	content := checkpointData{TypeMeta: checkpointType, ClaimInfoStateList: []claimState{}}
	for _, c := range m.claims {
		content.ClaimInfoStateList = append(content.ClaimInfoStateList, c.claimState)
	}
	slices.SortFunc(content.ClaimInfoStateList, func(a, b claimState) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ClaimName, b.ClaimName))
	})
	data, err := json.Marshal(content)
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("encode DRA checkpoint: %w", err)
	}
	text, err := json.Marshal(checkpointFile{Data: string(data), Checksum: crc32.ChecksumIEEE(data)})
	if err != nil {
		return fmt.Errorf("encode DRA checkpoint: %w", err)
	}
	if err := checkpoint.Replace(m.checkpointPath(), text, 0o600); err != nil {
		return fmt.Errorf("write DRA checkpoint: %w", err)
	}
	return nil
}
