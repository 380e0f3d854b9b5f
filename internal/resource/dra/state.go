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

// The types that follow are the record's form, which is the reference kubelet's.
type record struct {
	Data     string // JSON of content
	Checksum uint32
}

type content struct {
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

// skips reports whether the driver need not be asked to do this.
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

var recordType = metav1.TypeMeta{Kind: "DRACheckpoint", APIVersion: "checkpoint.dra.kubelet.k8s.io/v1"}

func (m *Manager) path() string { return filepath.Join(m.cfg.RootDir, "dra_manager_state") }

// restore takes note of what was prepared. A record that makes no sense is put aside: the
// node must come up, and drivers are asked again for pods that come up with it.
func (m *Manager) restore() error {
	states, err := read(m.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errRecord):
		aside := m.path() + ".bad"
		m.deps.Log.Error("it is not known which claims are prepared; the file is put aside", "err", err, "file", aside)
		if err := os.Rename(m.path(), aside); err != nil {
			return fmt.Errorf("put a bad record of claims aside: %w", err)
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

var errRecord = errors.New("record of claims is torn, changed or foreign")

func read(path string) ([]claimState, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read record of claims: %w", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w: %v", path, errRecord, err)
	}
	if sum := crc32.ChecksumIEEE([]byte(r.Data)); sum != r.Checksum {
		return nil, fmt.Errorf("read %s: %w: checksum is %d, the content has %d", path, errRecord, r.Checksum, sum)
	}
	var c content
	if err := json.Unmarshal([]byte(r.Data), &c); err != nil {
		return nil, fmt.Errorf("read %s: %w: %v", path, errRecord, err)
	}
	return c.ClaimInfoStateList, nil
}

// save writes down all claims.
func (m *Manager) save() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	m.mu.Lock()
	c := content{TypeMeta: recordType, ClaimInfoStateList: []claimState{}}
	for _, one := range m.claims {
		c.ClaimInfoStateList = append(c.ClaimInfoStateList, one.claimState)
	}
	slices.SortFunc(c.ClaimInfoStateList, func(a, b claimState) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ClaimName, b.ClaimName))
	})
	data, err := json.Marshal(c)
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("encode record of claims: %w", err)
	}
	text, err := json.Marshal(record{Data: string(data), Checksum: crc32.ChecksumIEEE(data)})
	if err != nil {
		return fmt.Errorf("encode record of claims: %w", err)
	}
	if err := checkpoint.Replace(m.path(), text, 0o600); err != nil {
		return fmt.Errorf("write record of claims: %w", err)
	}
	return nil
}
